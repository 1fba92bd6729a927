// Looks at a report that is drawn: what is wider than the page, what is too pale, which plots lack something.
(async () => {
  // On paper nothing scrolls.
  const paper = matchMedia("print").matches;
  const named = (element) => {
    const words = (element.textContent || "").trim().slice(0, 40);
    return `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} "${words}"`;
  };
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => {
    for (let at = paper ? null : element.parentElement; at; at = at.parentElement) {
      if (/auto|scroll|hidden|clip/.test(getComputedStyle(at).overflowX)) return at !== document.documentElement;
    }
    return false;
  };
  const wide = [];
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || element.closest("svg, .skip, .unseen, script, style")) continue;
    if ((box.right > width + 1 || box.left < -1) && !scrolls(element)) wide.push(named(element));
  }

  const parse = (text) => {
    const numbers = /rgba?\(([^)]*)\)/.exec(text)?.[1].split(/[ ,/]+/).map(Number);
    return numbers && { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour && colour.alpha === 1) return colour.rgb;
    }
    return [255, 255, 255];
  };
  const pale = [];
  for (const element of document.body.querySelectorAll("*")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const style = getComputedStyle(element);
    const seen = element.getClientRects().length > 0 && style.visibility === "visible";
    if (!text || !seen || element.closest(".unseen, .skip, script, style, [aria-hidden=true]")) continue;
    const colour = parse(element.closest("svg") ? style.fill : style.color);
    if (!colour || colour.alpha === 0) continue;
    const [a, b] = [luminance(colour.rgb), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) pale.push(`${ratio.toFixed(2)} ${named(element)}`);
  }

  const plots = [];
  for (const plot of document.querySelectorAll("figure.plot")) {
    const title = plot.querySelector("h3")?.textContent.trim();
    const rows = plot.querySelectorAll("details.values tbody tr").length;
    const source = JSON.parse(plot.querySelector("script.figure").textContent);
    // An axis of numbers has a unit, or says what it counts; one of names has neither.
    const axes = [[source.layout.xaxis, source.layout.xaxis?.title?.text],
      [source.layout.yaxis, plot.querySelector(".y-title")?.textContent]];
    const bare = axes.filter(([axis, head]) => !axis?.ticktext && !/\(.+\)|\b(count|number|share) of\b/i.test(head ?? ""));
    const drawn = plot.querySelector(".canvas svg.main-svg");
    if (!title || rows === 0 || bare.length > 0 || !drawn) {
      plots.push(`${title}: ${rows} rows, drawn: ${Boolean(drawn)}, axes without a unit: ${bare.map(([, head]) => head)}`);
    }
  }
  const count = document.querySelectorAll("figure.plot").length;
  const page = document.documentElement.scrollWidth;
  return { width, page, wide: wide.slice(0, 20), pale: pale.slice(0, 20), plots, count };
})()
