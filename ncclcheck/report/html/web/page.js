// The page itself: theme, copying, filters, printing, download. Without this script all the text is still there.
"use strict";
const page = { data: {}, onTheme: [], beforePrint: [], afterPrint: [] };

document.documentElement.classList.add("scripted");

page.element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
page.byId = (id) => document.getElementById(id);
page.number = (value) => value.toLocaleString("en-US");
page.say = (text) => { page.byId("spoken").textContent = text; };

// The theme: the system's, unless the reader has chosen one. Storage may be refused (a file opened from disk).
page.stored = () => { try { return localStorage.getItem("ncclcheck-theme"); } catch { return null; } };
page.store = (theme) => { try { localStorage.setItem("ncclcheck-theme", theme); } catch { /* for this visit only */ } };
page.isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
page.setTheme = (theme) => {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  page.byId("theme")?.setAttribute("aria-pressed", String(page.isDark()));
  page.onTheme.forEach((draw) => draw());
};
if (["dark", "light"].includes(page.stored())) document.documentElement.dataset.theme = page.stored();

page.startTheme = () => {
  page.setTheme(document.documentElement.dataset.theme);
  page.byId("theme").addEventListener("click", () => {
    const theme = page.isDark() ? "light" : "dark";
    page.store(theme);
    page.setTheme(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!document.documentElement.dataset.theme) page.setTheme();
  });
};

page.copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = page.element("textarea", { value: text, className: "spoken" });
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus();
    return done;
  }
};

page.startCopying = () => {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const done = await page.copy(button.parentElement.querySelector("pre").textContent);
    button.textContent = done ? "Copied" : "Not copied";
    page.say(done ? "Copied" : "The browser did not allow copying");
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
};

// Every word must occur, in any order.
page.matcher = (text) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (subject) => words.every((word) => subject.includes(word));
};

page.startFilter = (inputId, countId, selector) => {
  const input = page.byId(inputId);
  if (!input) return;
  const all = [...document.querySelectorAll(selector)];
  const texts = all.map((one) => one.textContent.toLowerCase());
  const filter = () => {
    const matches = page.matcher(input.value);
    let shown = 0;
    all.forEach((one, at) => {
      one.hidden = !matches(texts[at]);
      shown += !one.hidden;
    });
    page.byId(countId).textContent = input.value.trim() ? `${page.number(shown)} of ${page.number(all.length)}` : "";
  };
  input.addEventListener("input", filter);
  page.beforePrint.push(() => all.forEach((one) => { one.hidden = false; }));
  page.afterPrint.push(filter);
};

page.startSections = () => {
  const links = new Map([...document.querySelectorAll("#sections a")].map((a) => [a.hash.slice(1), a]));
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    entries.forEach(({ target, isIntersecting }) => (isIntersecting ? seen.add(target.id) : seen.delete(target.id)));
    const first = [...links.keys()].find((id) => seen.has(id));
    links.forEach((a, id) => (id === first ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current")));
  }, { rootMargin: "-5% 0px -60% 0px" });
  links.forEach((_, id) => watch.observe(page.byId(id)));
};

page.startPrinting = () => {
  let opened = [];
  let theme;
  addEventListener("beforeprint", () => {
    theme = document.documentElement.dataset.theme;
    page.setTheme("light");
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
    page.beforePrint.forEach((prepare) => prepare());
  });
  addEventListener("afterprint", () => {
    opened.forEach((one) => { one.open = false; });
    page.afterPrint.forEach((restore) => restore());
    page.setTheme(theme);
  });
};

page.reportText = async () => {
  const held = page.byId("report-json");
  if (held.type === "application/json") return held.textContent;
  const bytes = Uint8Array.from(atob(held.textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};

page.startDownload = () => {
  page.byId("download").addEventListener("click", async () => {
    const blob = new Blob([await page.reportText()], { type: "application/json" });
    const link = page.element("a", { href: URL.createObjectURL(blob), download: "ncclcheck-report.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    page.say("The JSON was saved");
  });
};

// Called where all the text is there and the charts' library is not yet: the reader need not wait for that.
page.start = () => {
  page.data = JSON.parse(page.byId("page-data").textContent);
  page.startTheme();
  page.startCopying();
  page.startFilter("findings-filter", "findings-count", "#findings article");
  page.startFilter("checks-filter", "checks-count", "#checks-table tbody tr");
  page.startNodes();
  page.startSections();
  page.startPrinting();
  page.startDownload();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
};
addEventListener("DOMContentLoaded", () => page.startCharts());
