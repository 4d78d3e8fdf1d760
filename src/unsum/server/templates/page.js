"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const key = document.querySelector('meta[name="unsum-key"]').content;
  const form = find("form");
  let token = null;
  let checks = 0;

  async function ask(path, options = {}) {
    const response = await fetch(path, { ...options, headers: { "X-Unsum-Key": key } });
    const answer = response.status === 204 ? {} : await response.json();
    if (!response.ok) throw new Error(answer.error ?? `the server answered ${response.status}.`);
    return answer;
  }

  function make(tag, text, name = "") {
    const element = document.createElement(tag);
    element.textContent = text;
    element.className = name;
    return element;
  }

  function complain(where, text) {
    find(where).textContent = text;
    find(where).hidden = text === "";
  }

  async function give(file) {
    complain("trouble", "");
    for (const part of ["understand", "work", "result"]) find(part).hidden = true;
    try {
      if (token !== null) await ask(`/files/${token}`, { method: "DELETE" });
      token = null;
      const answer = await ask(`/files?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      token = answer.token;
      understand(answer);
    } catch (error) {
      complain("trouble", error.message);
    }
  }

  function understand({ label, columns, guess, rows }) {
    find("label").textContent = label;
    const head = document.createElement("tr");
    head.append(...columns.map((column) => make("th", column)));
    const body = rows.map((row) => {
      const line = document.createElement("tr");
      line.append(...row.map((cell) => make("td", cell)));
      return line;
    });
    find("preview").replaceChildren(head, ...body);
    for (const role of ["series", "start", "end", "total", "quality"]) {
      const select = form.elements[role];
      const none = make("option", role === "quality" ? "not given" : "choose a column");
      none.value = "";
      select.replaceChildren(none, ...columns.map((column) => {
        const option = make("option", column);
        option.value = column;
        return option;
      }));
      select.value = guess[role] ?? "";
    }
    find("understand").hidden = false;
    check();
  }

  function asked() {
    const field = (name) => form.elements[name];
    const columns = {};
    for (const role of ["series", "start", "end", "total", "quality"]) columns[role] = field(role).value;
    const said = { columns, end: field("end_is").value, drop_bad: field("drop_bad").checked };
    for (const name of ["freq", "tz", "date_format", "decimal", "overlaps", "negatives", "method", "interval", "output"]) {
      said[name] = field(name).value.trim();
    }
    return JSON.stringify(said);
  }

  async function check() {
    const mine = ++checks;
    find("run").disabled = true;
    const missing = ["series", "start", "end", "total"].filter((role) => form.elements[role].value === "");
    find("findings").replaceChildren();
    if (missing.length > 0) {
      find("verdict").textContent = `Choose the column of: ${missing.join(", ")}.`;
      return;
    }
    find("verdict").textContent = "Checking every row …";
    try {
      const answer = await ask(`/files/${token}/check`, { method: "POST", body: asked() });
      if (mine === checks) judge(answer);
    } catch (error) {
      if (mine === checks) find("verdict").textContent = error.message;
    }
  }

  function judge(answer) {
    find("findings").replaceChildren(...answer.findings.map((finding) => {
      const box = make("div", "", `finding ${finding.severity}`);
      box.append(make("b", `${finding.severity} `), make("span", finding.sentence));
      for (const detail of finding.details) box.append(make("div", detail));
      return box;
    }));
    const stops = answer.findings.some((finding) => finding.severity === "error");
    const rows = `${answer.rows_read.toLocaleString("en")} rows: ${answer.rows_used.toLocaleString("en")} can be used, ` +
      `${answer.rows_set_aside.toLocaleString("en")} cannot.`;
    find("verdict").textContent =
      answer.usable === null ? `${rows} There is nothing to recover.`
        : stops && !form.elements.drop_bad.checked ? `${rows} Set bad rows aside, or correct the file.`
          : rows;
    find("run").disabled = answer.usable === null || (stops && !form.elements.drop_bad.checked);
  }

  async function run() {
    find("run").disabled = true;
    find("result").hidden = true;
    complain("failure", "");
    find("stage").textContent = "Waiting …";
    find("work").hidden = false;
    try {
      await ask(`/files/${token}/work`, { method: "POST", body: asked() });
      for (;;) {
        const work = await ask(`/files/${token}/work`);
        const bar = find("bar");
        find("stage").textContent = work.state === "done" ? "Done." : `${work.stage || work.state} …`;
        if (work.state === "done") bar.value = 1;
        else if (work.total > 0) bar.value = Math.min(1, work.done / work.total);
        else bar.removeAttribute("value");
        if (work.state === "failed") throw new Error(work.error);
        if (work.state === "done") {
          show(work);
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    } catch (error) {
      find("bar").value = 0;
      complain("failure", error.message);
    }
    find("run").disabled = false;
  }

  function show(work) {
    find("facts").replaceChildren(...work.facts.flatMap(([label, text]) => [make("dt", label), make("dd", text)]));
    const results = [[work.output, "the recovered series"], ["report.html", "the report"]];
    if (work.set_aside) results.push(["recovered.set-aside.csv", "the rows set aside"]);
    find("downloads").replaceChildren(...results.map(([name, text]) => {
      const link = make("a", `Download ${text}`);
      link.href = `/files/${token}/out/${name}`;
      link.download = name;
      return link;
    }));
    find("report").src = `/files/${token}/out/report.html`;
    find("result").hidden = false;
  }

  find("file").addEventListener("change", (event) => {
    if (event.target.files.length > 0) give(event.target.files[0]);
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      find("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length > 0) give(event.dataTransfer.files[0]);
    });
  }
  form.addEventListener("change", check);
  form.addEventListener("submit", (event) => event.preventDefault());
  find("run").addEventListener("click", run);
})();
