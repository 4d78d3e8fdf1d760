"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const middles = data.edges.slice(1).map((edge, t) => (edge + data.edges[t]) / 2);
  const begins = data.edges.slice(0, -1);
  const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  let shown = null;

  function unpack(text, unit) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 2 }, (_, t) => (view.getUint16(2 * t, true) / 65535) * unit);
  }

  function source(name) {
    for (const document of Bokeh.documents) {
      const model = document.get_model_by_name(name);
      if (model !== null) return model;
    }
    return null;
  }

  function show(series) {
    shown = series;
    const [y, lower, upper] = series.rows.map((row) => unpack(row, series.unit));
    const lengths = series.start.map((start, i) => series.stop[i] - start);
    source("values").data = { x: middles, at: begins, y, lower: lower ?? y, upper: upper ?? y };
    source("readings").data = {
      left: series.start.map((t) => data.edges[t]),
      right: series.stop.map((t) => data.edges[t]),
      top: series.total.map((total, i) => total / lengths[i]),
      total: series.total,
      first: series.start.map((t) => data.texts[t]),
      last: series.stop.map((t) => data.texts[t]),
      kind: series.total.map((_, i) => (series.soft.includes(i) ? "estimated" : "")),
    };
    find("shown").textContent = series.name;
    find("about").textContent =
      `${series.total.length} readings; mean ${few.format(series.level)} a period; ` +
      `${few.format(100 * series.moved)} % lies elsewhere than even spreading puts it`;
    for (const button of find("list").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.series === series));
    }
  }

  function tell(series, order) {
    if (order === "moved") return `${few.format(100 * series.moved)} %`;
    if (order === "hardness" && series.hardness !== null) {
      return data.judged ? `± ${few.format(100 * series.hardness)} %` : `${few.format(series.hardness)} periods`;
    }
    return few.format(series.level);
  }

  function list() {
    const order = find("order").value;
    const wanted = find("search").value.toLocaleLowerCase();
    const found = data.series.filter((series) => series.name.toLocaleLowerCase().includes(wanted));
    found.sort((a, b) =>
      order === "name" ? a.name.localeCompare(b.name, "en", { numeric: true }) : (b[order] ?? -1) - (a[order] ?? -1));
    find("list").replaceChildren(...found.map((series) => {
      const [item, button, name, figure] = ["li", "button", "span", "span"].map((tag) => document.createElement(tag));
      name.textContent = series.name;
      figure.textContent = tell(series, order);
      button.type = "button";
      button.series = series;
      button.title = series.name;
      button.setAttribute("aria-pressed", String(series === shown));
      button.append(name, figure);
      button.addEventListener("click", () => show(series));
      item.append(button);
      return item;
    }));
    find("count").textContent = found.length === 1 ? "1 series" : `${found.length} series`;
    return found;
  }

  async function begin() {
    for (const item of data.items) await Bokeh.embed.embed_item(item);
    find("search").addEventListener("input", () => {
      const found = list();
      if (found.length === 1) show(found[0]);
    });
    find("order").addEventListener("change", list);
    const found = list();
    if (found.length > 0) show(found[0]);
    document.documentElement.dataset.ready = "yes";
  }

  window.addEventListener("load", begin);
})();
