// The node table: filtered, sorted, equal nodes folded, a page at a time.
page.startNodes = () => {
  const table = page.byId("nodes-table");
  if (!table) return;
  const PER_PAGE = 100;
  const CHIPS = 4;
  const { columns, groups: packed, rows: packedRows } = page.data.nodes;
  const groups = packed.map(([hosts, count, status, findings, worst, values], number) => (
    { hosts, count, status, findings, worst, values, number }));
  const titles = [...document.querySelectorAll("#findings article")].map((article) => ({
    slug: article.querySelector(".slug").textContent,
    severity: article.querySelector(".severity").textContent.trim(),
  }));
  groups.forEach((group) => {
    const slugs = group.findings.map((number) => `${titles[number].severity} ${titles[number].slug}`);
    group.text = [group.status, ...group.values, ...slugs].join(" ").toLowerCase();
  });
  const rows = packedRows.map(([host, rank, address, group]) => (
    { host, rank, address, group: groups[group], text: `${host} ${address} `.toLowerCase() }));
  rows.forEach((row) => { row.text += row.group.text; });

  const filter = page.byId("nodes-filter");
  const fold = page.byId("nodes-fold");
  const state = { sort: 0, down: false, sorted: false, first: 0 };
  const WORST = ["error", "warning", "info", ""];
  const compare = new Intl.Collator("en", { numeric: true }).compare;

  const header = () => (fold.checked
    ? ["nodes", "count", "status", "findings", ...columns]
    : ["node", "rank", "status", "findings", ...columns, "address"]);
  const key = (item, column) => {
    const group = item.group ?? item;
    if (column === 0) return item.host ?? item.hosts;
    if (column === 1) return item.rank ?? item.matched;
    if (column === 2) return group.status;
    if (column === 3) return `${WORST.indexOf(group.worst)} ${String(9999 - group.findings.length)}`;
    return group.values[column - 4] ?? item.address;
  };
  const items = () => {
    const matches = page.matcher(filter.value);
    const matched = rows.filter((row) => matches(row.text));
    let shown = matched;
    if (fold.checked) {
      groups.forEach((group) => { group.matched = 0; });
      matched.forEach((row) => { row.group.matched += 1; });
      shown = groups.filter((group) => group.matched);
    }
    if (state.sorted) {
      const sign = state.down ? -1 : 1;
      shown = [...shown].sort((a, b) => sign * compare(String(key(a, state.sort)), String(key(b, state.sort))));
    }
    return { shown, matched };
  };

  const chips = (findings) => {
    const made = findings.slice(0, CHIPS).flatMap((number) => {
      const { slug, severity } = titles[number];
      return [page.element("a", { className: `chip ${severity}`, href: `#finding-${number}`, textContent: `${severity}: ${slug}` }), " "];
    });
    if (findings.length > CHIPS) made.push(`and ${findings.length - CHIPS} more`);
    return made;
  };
  const cells = (item) => {
    const group = item.group ?? item;
    const name = page.element("span", { className: "hosts", textContent: item.host ?? item.hosts });
    const count = fold.checked
      ? page.element("td", { className: "right" }, unfolder(group))
      : page.element("td", { className: "right", textContent: item.rank });
    const made = [
      page.element("th", { scope: "row" }, name), count,
      page.element("td", { className: `nowrap ${group.status}`, textContent: group.status === "silent" ? "? silent" : "✓ reported" }),
      page.element("td", {}, ...chips(group.findings)),
      ...group.values.map((value) => page.element("td", { textContent: value })),
    ];
    if (!fold.checked) made.push(page.element("td", { textContent: item.address }));
    return made;
  };
  const unfolder = (group) => {
    if (group.count === 1) return "1";
    const text = group.matched < group.count ? `${page.number(group.matched)} of ${page.number(group.count)}` : page.number(group.count);
    const button = page.element("button", { type: "button", textContent: text });
    button.setAttribute("aria-label", `Show these ${text} nodes`);
    button.addEventListener("click", () => {
      fold.checked = false;
      state.only = group;
      draw(true);
      filter.focus();
    });
    return button;
  };

  const drawHeader = () => {
    table.tHead.rows[0].replaceChildren(...header().map((title, column) => {
      const button = page.element("button", { type: "button", textContent: title });
      const cell = page.element("th", { scope: "col", className: column === 1 ? "right" : "" }, button);
      if (state.sorted && state.sort === column) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      button.addEventListener("click", () => {
        Object.assign(state, { down: state.sorted && state.sort === column && !state.down, sort: column, sorted: true });
        draw(true);
        table.tHead.rows[0].cells[column].firstChild.focus();
      });
      return cell;
    }));
  };
  const draw = (fromStart) => {
    if (fromStart) state.first = 0;
    if (fold.checked) state.only = null;
    let { shown, matched } = items();
    if (state.only) shown = matched = matched.filter((row) => row.group === state.only);
    const last = Math.min(state.first + PER_PAGE, shown.length);
    drawHeader();
    table.tBodies[0].replaceChildren(...shown.slice(state.first, last).map((item) => page.element("tr", {}, ...cells(item))));
    if (!shown.length) {
      table.tBodies[0].append(page.element("tr", {}, page.element("td", { colSpan: header().length, textContent: "No node matches." })));
    }
    const inGroups = fold.checked ? ` in ${page.number(shown.length)} ${shown.length === 1 ? "group" : "groups"}` : "";
    const alike = state.only ? " (those that are equal)" : "";
    page.byId("nodes-count").textContent = `${page.number(matched.length)} of ${page.number(rows.length)} nodes${inGroups}${alike}`;
    page.byId("nodes-pager").hidden = shown.length <= PER_PAGE;
    page.byId("nodes-place").textContent = `${page.number(state.first + 1)} to ${page.number(last)} of ${page.number(shown.length)}`;
    page.byId("nodes-previous").disabled = state.first === 0;
    page.byId("nodes-next").disabled = last === shown.length;
  };
  const turn = (by) => {
    state.first = Math.max(0, state.first + by);
    draw(false);
    table.parentElement.scrollTop = 0;
  };

  filter.addEventListener("input", () => draw(true));
  fold.addEventListener("change", () => {
    state.sorted = false;
    state.only = null;
    draw(true);
  });
  page.byId("nodes-previous").addEventListener("click", () => turn(-PER_PAGE));
  page.byId("nodes-next").addEventListener("click", () => turn(PER_PAGE));

  let before;
  page.beforePrint.push(() => {  // on paper: all nodes, folded
    before = { text: filter.value, folded: fold.checked };
    filter.value = "";
    fold.checked = true;
    draw(true);
  });
  page.afterPrint.push(() => {
    filter.value = before.text;
    fold.checked = before.folded;
    draw(true);
  });
  fold.checked = groups.length < rows.length;
  draw(true);
};
