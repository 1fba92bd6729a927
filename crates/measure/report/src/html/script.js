"use strict";
// Draws the plots and makes tables sortable. Without it every value is still in the tables.
(() => {
  const root = document.documentElement;
  const figures = [...document.querySelectorAll("figure.plot")].map((element) => ({
    element,
    canvas: element.querySelector(".canvas"),
    source: JSON.parse(element.querySelector("script.figure").textContent),
    hidden: new Set(),
    buttons: [],
  }));
  let printing = false;

  // Puts the style sheet's colours in the place of their names.
  function themed(value, key, style) {
    if (Array.isArray(value)) return value.map((item) => themed(item, key, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, themed(v, k, style)]));
    }
    if (typeof value === "string" && /color$/.test(key)) {
      const name = /^var\((--[a-z0-9-]+)\)$/.exec(value);
      if (name) return style.getPropertyValue(name[1]).trim();
    }
    return value;
  }

  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // Breaks a text at spaces into lines of about `width` characters.
  function wrap(text, width) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1];
      if (last && last.length + 1 + word.length > width) lines.push(word);
      else lines[lines.length - 1] = last ? last + " " + word : word;
    }
    return lines;
  }

  const commandAt = (commands, point) => (Array.isArray(commands) ? commands[point] : commands);

  function build(figure) {
    const style = getComputedStyle(root);
    const { data, layout } = themed({ data: figure.source.data, layout: figure.source.layout }, "", style);
    const width = printing ? 680 : figure.canvas.clientWidth;
    const narrow = width < 560;
    data.forEach((trace, index) => {
      if (figure.hidden.has(trace.legendgroup)) trace.visible = false;
      if (!Array.isArray(trace.hovertext)) return;
      trace.hovertext = trace.hovertext.map((text, point) => {
        const command = commandAt(figure.source.commands[index], point);
        if (!command) return text;
        const lines = wrap(command, narrow ? 34 : 64).map(escape);
        return text + "<br><i>" + lines.join("<br>") + "</i>";
      });
    });
    layout.width = width;
    layout.autosize = false;
    layout.hoverlabel = { bgcolor: style.getPropertyValue("--surface").trim(), align: "left", namelength: -1,
      bordercolor: style.getPropertyValue("--axis").trim(),
      font: { color: style.getPropertyValue("--ink").trim(), size: narrow ? 11 : 12, family: "system-ui, sans-serif" } };
    layout.dragmode = narrow ? false : "zoom";
    if (narrow) {
      layout.xaxis.nticks = 5;
      const title = layout.xaxis.title;
      title.text = wrap(title.text, layout.yaxis.ticktext ? 24 : 40).join("<br>");
      layout.margin = { ...layout.margin, l: 40, r: 8, t: 8 };
      if (layout.yaxis.ticktext) {
        // Entities stay whole: names are broken at spaces only.
        layout.yaxis.ticktext = layout.yaxis.ticktext.map((text) => wrap(text, 16).join("<br>"));
        layout.yaxis.tickfont = { size: 11 };
      }
    }
    return { data, layout };
  }

  const options = { responsive: false, displaylogo: false, displayModeBar: "hover", scrollZoom: false, showTips: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"] };

  function draw(figure) {
    const { data, layout } = build(figure);
    const name = figure.element.id;
    Plotly.react(figure.canvas, data, layout, { ...options, toImageButtonOptions: { filename: name, scale: 2 } });
  }

  function copyButton(label, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = label;
    button.addEventListener("click", async () => {
      const done = await copy(text());
      button.textContent = done ? "Copied" : "Not copied: select it and copy";
      setTimeout(() => { button.textContent = label; }, 2000);
    });
    return button;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // A file opened from disk may not be allowed the clipboard: the old way.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  function legend(figure) {
    for (const item of figure.element.querySelectorAll(".legend li")) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide";
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const series = item.dataset.series;
        if (!figure.hidden.delete(series)) figure.hidden.add(series);
        button.setAttribute("aria-pressed", String(!figure.hidden.has(series)));
        show(figure);
      });
    }
  }

  function pick(figure) {
    const line = figure.element.querySelector(".picked");
    figure.canvas.on("plotly_click", (event) => {
      const point = event.points[0];
      const command = point && commandAt(figure.source.commands[point.curveNumber], point.pointNumber);
      if (!command) return;
      const code = document.createElement("code");
      code.textContent = command;
      line.replaceChildren("Measure this point again: ", code, " ", copyButton("Copy", () => command));
      line.hidden = false;
    });
  }

  // A plot in a folded part has no width: it is drawn when that is unfolded.
  function show(figure) {
    if (!printing && figure.canvas.clientWidth === 0) {
      figure.stale = true;
      return;
    }
    figure.stale = false;
    draw(figure);
    if (figure.shown) return;
    figure.shown = true;
    pick(figure);
  }

  // The plotting library lies packed in the page.
  async function unpack() {
    const packed = document.getElementById("plotly");
    if (!packed || typeof DecompressionStream === "undefined") return;
    const letters = atob(packed.textContent);
    const bytes = new Uint8Array(letters.length);
    for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  const redraw = () => figures.forEach(show);
  const inView = (figure) => {
    const box = figure.canvas.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  };
  async function begin() {
    // A page without a plot in view is complete before the library is there, and may be painted before that is unpacked.
    const atFirst = figures.filter(inView).length;
    const complete = () => root.setAttribute("data-shown", String(atFirst));
    if (atFirst === 0) complete();
    await new Promise((done) => setTimeout(done));
    await unpack();
    if (typeof Plotly === "undefined") return;
    figures.forEach(legend);
    figures.filter(inView).forEach(show);
    complete();
    for (const details of document.querySelectorAll("details.fold")) {
      details.addEventListener("toggle", () => {
        if (!details.open) return;
        figures.filter((figure) => figure.stale && details.contains(figure.element)).forEach(show);
      });
    }
    let width = root.clientWidth;
    let pending = 0;
    addEventListener("resize", () => {
      if (printing || root.clientWidth === width) return;
      width = root.clientWidth;
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(redraw);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!printing) redraw(); });
    // The others one by one: the page can be read meanwhile.
    for (const figure of figures) {
      await new Promise((done) => setTimeout(done));
      if (!figure.shown) show(figure);
    }
  }
  begin().finally(() => root.setAttribute("data-ready", ""));

  // On paper: the light colours, a fixed width, nothing folded.
  let folded = [];
  addEventListener("beforeprint", () => {
    if (printing) return;
    printing = true;
    root.setAttribute("data-print", "");
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    if (typeof Plotly !== "undefined") redraw();
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.removeAttribute("data-print");
    folded.forEach((details) => { details.open = false; });
    if (typeof Plotly !== "undefined") redraw();
  });

  const text = (cell) => (cell ? cell.dataset.v ?? cell.innerText.trim() : "");

  function compare(a, b) {
    const [x, y] = [a?.dataset.v, b?.dataset.v];
    if (x !== undefined && y !== undefined) return Number(x) - Number(y);
    return text(a).localeCompare(text(b), "en", { numeric: true });
  }

  function sortable(table) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.classList.contains("again")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        const order = next === undefined ? "ascending" : next;
        if (!order) return body.append(...original);
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const empty = (row) => (row.cells[column]?.querySelector(":scope > .unseen") ? 1 : 0);
        // What is missing stays last either way.
        body.append(...[...original].sort((a, b) => empty(a) - empty(b) || sign * compare(a.cells[column], b.cells[column])));
      });
    });
  }

  // Quoted as RFC 4180 has it. A text that a spreadsheet would run as a formula gets an apostrophe.
  function field(value) {
    let out = String(value);
    if (/^[=+\-@\t\r]/.test(out) && !/^[+-]?[0-9.]+(e[+-]?[0-9]+)?$/i.test(out)) out = "'" + out;
    return /[",\n\r]/.test(out) ? '"' + out.replace(/"/g, '""') + '"' : out;
  }

  function csv(table) {
    const rows = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[0].cells];
    const wide = heads.map((_, column) => rows.some((row) => row.cells[column]?.dataset.low !== undefined));
    const lines = [heads.flatMap((head, column) => {
      const name = head.dataset.head;
      return wide[column] ? [name, name + " low", name + " high"] : [name];
    })];
    for (const row of rows) {
      lines.push(heads.flatMap((head, column) => {
        const cell = row.cells[column];
        const command = cell?.querySelector("details > code");
        const value = command ? command.textContent
          : cell?.querySelector(":scope > .unseen") ? "" : cell?.dataset.v ?? cell?.textContent.trim() ?? "";
        return wide[column] ? [value, cell?.dataset.low ?? "", cell?.dataset.high ?? ""] : [value];
      }));
    }
    return lines.map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
  }

  for (const table of document.querySelectorAll("table.data")) {
    sortable(table);
    const scroll = table.parentElement;
    const block = document.createElement("div");
    block.className = "block";
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.append(copyButton("Copy as CSV", () => csv(table)));
    scroll.replaceWith(block);
    block.append(tools, scroll);
  }
  for (const figure of document.querySelectorAll("figure.code")) {
    const code = figure.querySelector("code");
    figure.querySelector("figcaption").append(copyButton("Copy", () => code.textContent));
  }

  // A link to a folded part unfolds it.
  function unfold(id) {
    const fold = id && document.getElementById(id)?.querySelector(":scope > details.fold");
    if (fold) fold.open = true;
  }
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => unfold(link.hash.slice(1)));
  }
  addEventListener("hashchange", () => unfold(location.hash.slice(1)));
  unfold(location.hash.slice(1));

  // Marks where the reader is.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));
})();
