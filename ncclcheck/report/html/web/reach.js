// The reach matrix as a heat map: who could reach whom, and how fast.
page.reachDrawings = (reach, { colour, axis, layout, draw }) => {
  const TITLES = { tcp: "TCP reach", mtu: "large packets", latency: "round trip", bandwidth: "bandwidth" };
  const WITH_SIGNS = 24;
  const MANY = 64;
  const SIGNS = { ok: "✓", self: "=", "wrong-peer": "≠", stalled: "S", "answer-lost": "A", refused: "R", "no-route": "N", filtered: "F", error: "E" };
  const choice = page.byId("reach-kind");
  const only = page.byId("reach-only");
  Object.keys(TITLES).filter((kind) => reach.kinds[kind]).forEach((kind) => {
    choice.append(page.element("option", { value: kind, textContent: TITLES[kind] }));
  });
  const isOutcome = (kind) => kind === "tcp" || kind === "mtu";
  const isBad = (value) => !["ok", "self"].includes(reach.outcomes[value]);
  const failed = (kind) => (isOutcome(kind) ? reach.kinds[kind].filter(([, , value]) => isBad(value)) : []);

  const hostsOf = (kind) => {
    const involved = new Set(failed(kind).flatMap(([from, to]) => [from, to]));
    const offered = involved.size > 0 && reach.hosts.length > MANY;
    page.byId("reach-only-label").hidden = !offered;
    return reach.hosts.map((_, at) => at).filter((at) => !(offered && only.checked) || involved.has(at));
  };
  // Of the outcomes only those that occur, each a band of the scale; `band` turns an outcome into its number there.
  const colours = (kind, present) => {
    if (!isOutcome(kind)) {
      return { colorscale: "Cividis", reversescale: kind === "latency", colorbar: { title: { text: reach.units[kind] }, outlinewidth: 0 } };
    }
    const shade = (outcome) => ({ ok: colour("pass"), self: colour("muted"), filtered: colour("error"), error: colour("error") }[outcome] ?? colour("warning"));
    const names = present.map((value) => reach.outcomes[value]);
    const n = names.length;
    return {
      zmin: -0.5, zmax: n - 0.5,
      colorscale: names.flatMap((outcome, at) => [[at / n, shade(outcome)], [(at + 1) / n, shade(outcome)]]),
      colorbar: {
        tickvals: names.map((_, at) => at), ticktext: names.map((outcome) => `${SIGNS[outcome]} ${outcome}`), ticks: "", outlinewidth: 0,
        len: Math.min(1, 0.2 * n), y: 1, yanchor: "top",
      },
    };
  };

  const drawMatrix = () => {
    const kind = choice.value;
    const shown = hostsOf(kind);
    const place = new Map(shown.map((host, at) => [host, at]));
    const z = shown.map(() => new Array(shown.length).fill(null));
    const words = shown.map(() => new Array(shown.length).fill(""));
    const present = new Set();
    reach.kinds[kind].forEach(([from, to, value, where]) => {
      const row = place.get(from);
      const column = place.get(to);
      if (row === undefined || column === undefined) return;
      z[row][column] = value;
      const told = isOutcome(kind) ? reach.outcomes[value] : `${value} ${reach.units[kind]}`;
      words[row][column] = where ? `${told}, ${where}` : told;
      present.add(value);
    });
    const names = shown.map((at) => reach.hosts[at]);
    const withSigns = shown.length <= WITH_SIGNS;
    const order = [...present].sort((a, b) => a - b);
    const band = new Map(order.map((value, at) => [value, at]));
    const trace = {
      type: "heatmap", x: names, y: names,
      z: isOutcome(kind) ? z.map((row) => row.map((value) => (value === null ? null : band.get(value)))) : z, customdata: words, hoverongaps: false, xgap: withSigns ? 2 : 0, ygap: withSigns ? 2 : 0,
      hovertemplate: "%{y} to %{x}: %{customdata}<extra></extra>",
      ...colours(kind, order),
    };
    if (withSigns) {
      trace.text = z.map((row) => row.map((value) => (value === null ? "" : isOutcome(kind) ? SIGNS[reach.outcomes[value]] : String(value))));
      trace.texttemplate = "%{text}";
      trace.textfont = { size: isOutcome(kind) ? 15 : 11 };
    }
    const name = { type: "category", nticks: 40, tickfont: { size: 11 }, showgrid: false };
    return draw("chart-reach", [trace], layout(`${TITLES[kind]}: from (rows) to (columns)`, {
      xaxis: axis("", { ...name, side: "bottom" }), yaxis: axis("", { ...name, autorange: "reversed" }),
      height: Math.min(760, Math.max(260, 140 + 30 * shown.length)),
    }));
  };
  only.checked = true;
  choice.addEventListener("change", drawMatrix);
  only.addEventListener("change", drawMatrix);
  return { "chart-reach": drawMatrix };
};
