// The charts, each drawn when it comes into view, and again in the colours of the other theme.
page.startCharts = () => {
  if (typeof Plotly === "undefined") return;
  const { reach, bench, comparison } = page.data.charts;
  const SERIES = [  // Okabe and Ito's colours, each with a symbol and a dash of its own
    ["#0072b2", "#56b4e9", "circle", "solid"], ["#d55e00", "#ff8f4a", "square", "dash"],
    ["#007a5a", "#2cc79b", "diamond", "dot"], ["#a8537f", "#e39cc4", "triangle-up", "dashdot"],
    ["#9a6a00", "#f0c04f", "cross", "longdash"], ["#3b4a5e", "#c3cedd", "star", "longdashdot"],
  ];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const series = (at) => {
    const [light, dark, symbol, dash] = SERIES[at % SERIES.length];
    return { color: page.isDark() ? dark : light, symbol, dash };
  };
  const axis = (title, more = {}) => ({
    title: { text: title }, gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("muted"),
    automargin: true, ...more,
  });
  const layout = (title, more) => ({
    title: { text: title, font: { size: 15 }, x: 0, xref: "paper" },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("text"), family: "system-ui, Segoe UI, Roboto, Noto Sans, DejaVu Sans, sans-serif", size: 13 },
    margin: { l: 55, r: 20, t: 45, b: 50 }, hoverlabel: { font: { family: "inherit" } },
    legend: { orientation: "h", y: -0.14, yanchor: "top", x: 0 }, ...more,
  });
  const draw = (id, traces, made) => Plotly.react(page.byId(id), traces, made, {
    responsive: true, displaylogo: false, displayModeBar: false,
  });

  const drawings = {};
  const ops = bench ? [...new Set(bench.points.map((point) => point.op))] : [];
  const of = (op) => bench.points.filter((point) => point.op === op);
  const sizeAxis = () => {
    const ticks = new Map(bench.points.map((point) => [point.size, point.label]));
    const sizes = [...ticks.keys()].filter((size) => size > 0).sort((a, b) => a - b);
    const step = Math.ceil(sizes.length / 9);
    const shown = sizes.filter((_, at) => at % step === 0);
    return axis("", { type: "log", tickvals: shown, ticktext: shown.map((size) => ticks.get(size)) });
  };
  // 1, 2 and 5 of each decade, as plain numbers.
  const numberAxis = (values) => {
    const known = values.filter((value) => value > 0);
    const lowest = Math.floor(Math.log10(Math.min(1, ...known)));
    const highest = Math.ceil(Math.log10(Math.max(1, ...known)));
    const steps = Math.log10(Math.max(...known) / Math.min(...known)) > 4 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let power = lowest; power <= highest; power += 1) steps.forEach((step) => ticks.push(Number(`${step}e${power}`)));
    return axis("", { type: "log", tickvals: ticks, ticktext: ticks.map((tick) => tick.toLocaleString("en-US", { maximumFractionDigits: 9 })) });
  };
  const drawsAsLines = (op, at, field) => {
    const { color, symbol, dash } = series(at);
    const points = of(op);
    return {
      name: op, x: points.map((point) => point.size), y: points.map((point) => point[field]), mode: "lines+markers",
      line: { color, dash, width: 2 }, marker: { color, symbol, size: 8 },
      text: points.map((point) => `${op} ${point.label}${point.unstable ? ", unstable" : ""}`),
      hovertemplate: "%{text}: %{y}<extra></extra>",
    };
  };
  if (bench) {
    drawings["chart-busbw"] = () => {
      const ceilings = bench.ceilings.flatMap(({ op, busbw, binds }) => {
        const sizes = of(op).map((point) => point.size);
        if (!sizes.length) return [];
        return [{
          name: `ceiling ${op}`, x: [Math.min(...sizes), Math.max(...sizes)], y: [busbw, busbw], mode: "lines",
          line: { color: series(ops.indexOf(op)).color, dash: "longdash", width: 1.5 }, opacity: 0.75,
          hovertemplate: `ceiling of ${op}: %{y} GB/s<extra></extra>`, meta: binds,
        }];
      });
      return draw("chart-busbw", [...ops.map((op, at) => drawsAsLines(op, at, "busbw")), ...ceilings],
        layout("Bus bandwidth (GB/s) by size", {
          xaxis: sizeAxis(), yaxis: numberAxis([...bench.points, ...bench.ceilings].map((one) => one.busbw)), showlegend: true,
        }));
    };
    drawings["chart-latency"] = () => {
      const traces = ops.flatMap((op, at) => {
        const { color } = series(at);
        const points = of(op);
        const middle = drawsAsLines(op, at, "p50");
        middle.error_y = {
          type: "data", symmetric: false, color, thickness: 1, width: 3,
          array: points.map((point) => Math.max(0, point.p95 - point.p50)),
          arrayminus: points.map((point) => Math.max(0, point.p50 - point.min)),
        };
        return [middle];
      });
      return draw("chart-latency", traces,
        layout("Median time (us), bars to p95", {
          xaxis: sizeAxis(), yaxis: numberAxis(bench.points.flatMap((point) => [point.min, point.p95])), showlegend: true,
        }));
    };
    if (page.byId("late-point")) {
      const choice = page.byId("late-point");
      bench.points.forEach((point, at) => {
        if (point.ranks.length) choice.append(page.element("option", { value: at, textContent: `${point.op} ${point.label}` }));
      });
      const most = (point) => Math.max(0, ...point.ranks.map(([, , late]) => late));
      choice.value = [...choice.options].map((one) => Number(one.value)).reduce((a, b) => (most(bench.points[b]) > most(bench.points[a]) ? b : a));
      drawings["chart-late"] = () => {
        const point = bench.points[Number(choice.value)];
        const names = point.ranks.map(([rank]) => String(rank));
        const hosts = point.ranks.map(([, host]) => host);
        page.byId("late-note").textContent = point.ranks.length < point.of_ranks
          ? `the latest ${page.number(point.ranks.length)} of ${page.number(point.of_ranks)} ranks` : "";
        const cell = (text) => page.element("td", { textContent: text, className: "right" });
        page.byId("late-numbers").querySelector("tbody").replaceChildren(...point.ranks.map(([rank, host, late, stalled]) => page.element("tr", {},
          page.element("th", { scope: "row", textContent: rank }), page.element("td", { textContent: host }), cell(late), cell(stalled))));
        const bars = [{
          type: "bar", name: "late", x: names, y: point.ranks.map(([, , late]) => late), text: hosts, textposition: "none",
          marker: { color: series(1).color }, hovertemplate: "rank %{x} on %{text}: %{y} us late<extra></extra>",
        }];
        if (point.ranks.some(([, , , stalled]) => stalled > 0)) {
          bars.push({
            type: "bar", name: "its process did not run", x: names, y: point.ranks.map(([, , , stalled]) => stalled),
            text: hosts, textposition: "none", marker: { color: series(0).color, pattern: { shape: "/" } },
            hovertemplate: "rank %{x} on %{text}: did not run for %{y} us<extra></extra>",
          });
        }
        return draw("chart-late", bars, layout("Late by (us per iteration)", {
          xaxis: axis("rank", { type: "category", nticks: 32 }), yaxis: axis("", { rangemode: "tozero" }), bargap: 0.15,
        }));
      };
      choice.addEventListener("change", () => drawings["chart-late"]());
    }
  }
  if (comparison && page.byId("chart-comparison")) {
    drawings["chart-comparison"] = () => draw("chart-comparison",
      [["as-is", comparison.as_is], ["advised", comparison.advised]].map(([name, times], at) => {
        const { color, symbol, dash } = series(at);
        return {
          name, x: times.map((_, round) => round + 1), y: times, mode: "lines+markers",
          line: { color, dash, width: 1.5 }, marker: { color, symbol, size: 8 },
          hovertemplate: `${name}, round %{x}: %{y} us<extra></extra>`,
        };
      }),
      layout("Time of each round (us)", { xaxis: axis("round", { dtick: comparison.as_is.length > 20 ? undefined : 1 }), yaxis: axis("", { rangemode: "tozero" }) }));
  }
  if (reach) Object.assign(drawings, page.reachDrawings(reach, { colour, axis, layout, draw }));

  const drawn = new Set();
  const show = (id) => {
    drawn.add(id);
    drawings[id]();
  };
  const watch = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    if (isIntersecting && !drawn.has(target.id)) show(target.id);
  }), { rootMargin: "200px" });
  Object.keys(drawings).forEach((id) => watch.observe(page.byId(id)));
  page.onTheme.push(() => drawn.forEach((id) => drawings[id]()));
  page.beforePrint.push(() => Object.keys(drawings).forEach((id) => {
    show(id);
    Plotly.Plots.resize(page.byId(id));
  }));
};
