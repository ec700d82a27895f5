"use strict";
const at = id => document.getElementById(id);
const make = (name, content, cls) => { const it = document.createElement(name); if (content !== undefined) it.textContent = content; if (cls) it.className = cls; return it; };
const color = name => `var(--${name})`;
function short(number) {
  if (number >= 1e9) return (number / 1e9).toFixed(1) + "G";
  if (number >= 1e6) return (number / 1e6).toFixed(1) + "M";
  if (number >= 1e4) return (number / 1e3).toFixed(1) + "k";
  return number >= 100 || Number.isInteger(number) ? Math.round(number).toLocaleString("en") : number.toFixed(1);
}
function table(id, head, rows, empty) {
  const it = typeof id === "string" ? at(id) : id;
  if (!rows.length) { const row = make("tr"); row.append(make("td", empty, "empty")); it.replaceChildren(row); return; }
  const line = (cells, name) => {
    const row = make("tr");
    cells.forEach((cell, column) => {
      const one = make(name, typeof cell === "object" ? undefined : cell, head[column][1]);
      if (typeof cell === "object") one.append(...cell);
      row.append(one);
    });
    return row;
  };
  const top = make("thead"), body = make("tbody");
  top.append(line(head.map(([text]) => text), "th"));
  body.append(...rows.map(row => line(row, "td")));
  it.replaceChildren(top, body);
}

const seconds = count => count === 0 ? "–" : count < 60 ? count.toFixed(1) + " s" : count < 3600 ? `${Math.floor(count / 60)}m ${Math.round(count % 60)}s` : `${Math.floor(count / 3600)}h ${Math.round(count % 3600 / 60)}m`;

let data = null;
/* What modules of features draw of the data. Each gets a filter by the strategy that is chosen. */
const modules = [];
function draw() {
  if (!data) return;
  const wanted = at("strategy").value, of = list => list.filter(one => !wanted || one.strategy === wanted);
  modules.forEach(module => module(of));
  held(of);
  cards();
  store();
  const numbers = data.rejected.filter(one => one.count > 0), all = numbers.reduce((sum, one) => sum + one.count, 0);
  at("rejected").textContent = short(all);
  at("rejected-kinds").textContent = numbers.map(one => `${one.kind.replaceAll("_", " ")} ${short(one.count)}`).join(", ") || "since this node began";
  at("foot").textContent = `Weir ${data.version}. Numbers of consumers are estimates. As of ${(data.now ? new Date(data.now * 1000) : new Date()).toLocaleTimeString()}.`;
}

/* What limits deny, and permits: of this node, since it began. */
function held(of) {
  table("limits", [["limit", ""], ["strategy", "wider"], ["denials", "n"]],
    of(data.limits).map(one => [[make("div", one.limit), make("small", one.strategy, "narrow")], one.strategy, short(one.denials)]), "no limit has denied a call");
  at("permits-card").hidden = !data.permits.length;
  table("permits", [["strategy", ""], ["held", "n"], ["limit", "n"], ["keys", "n"]],
    of(data.permits).map(one => [one.strategy, short(one.held), short(one.limit), short(one.keys)]), "no permits");
  at("costs-card").hidden = !data.costs.length;
  const used = one => (data.series || []).reduce((sum, row) => sum + (row.strategy === one.strategy && row.costs[one.cost] || 0), 0);
  const amount = (units, one) => [make("span", short(units)), make("small", one.unit ? " " + one.unit : "")];
  table("costs", [["limit", ""], ["cost", "wider"], ["used", "n"], ["held", "n"]],
    of(data.costs).map(one => [[make("div", one.limit), make("small", one.strategy)], one.cost, amount(used(one), one), one.held === null ? "–" : amount(one.held, one)]), "no costs by name");
}

/* The cards of features, of this node: a table each. */
function cards() {
  const forms = { count: short, seconds };
  at("cards").replaceChildren(...data.cards.filter(card => card.rows.length).map(card => {
    const it = make("section", undefined, "half"), rows = make("table");
    const head = card.columns.map(one => [one.heading, one.wide ? "n wider" : "n"]);
    table(rows, [[card.label, ""], ...head], card.rows.map(([name, ...cells]) => [name, ...cells.map((cell, place) => forms[card.columns[place].form](cell))]), "");
    it.append(make("h2", card.title), make("p", card.about), rows);
    return it;
  }));
}

/* The banner: a paragraph for each problem, amber if calls are decided all the same. */
function tell(problems, cls) {
  at("problem").hidden = !problems.length;
  at("problem").className = cls;
  at("problem").replaceChildren(...problems.map(problem => make("p", problem)));
}

function store() {
  const lines = data.health.trim().split("\n"), notes = lines.filter(line => line.startsWith("note: ")).map(line => line.slice(6));
  const state = !data.ready ? ["bad", "not ready"] : !lines[0].startsWith("ready") ? ["fair", "degraded"]
    : notes.length ? ["fair", notes.length > 1 ? `${notes.length} notes` : "1 note"] : ["good", "store ok"];
  at("store").className = "pill " + state[0];
  at("store").textContent = state[1];
  at("health").textContent = data.health.trim();
  at("breakers").replaceChildren(...data.breakers.map(one => {
    const it = make("div", `${one.node}: ${one.open ? "breaker open, not asked" : one.up ? "asked" : "does not decide"}`, one.open || !one.up ? "open" : "");
    if (one.opened) it.textContent += `, opened ${short(one.opened)} ×`;
    return it;
  }));
  const stalled = !lines[0].startsWith("ready");
  const problem = stalled ? `The store does not answer, so this page shows what this node knows. ${lines[0]}`
    : data.incomplete ? `The store has not answered about other nodes, so their decisions are missing here: ${data.incomplete}` : "";
  tell([...(problem ? [problem] : []), ...notes], problem ? "bad" : "fair");
}

/* The token stays in this variable: a reload asks for it again. */
let token = "";
at("login").onsubmit = event => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  load(false);
};
async function load(again = true) {
  try {
    const headers = token ? { authorization: "Bearer " + token } : {};
    const answer = await fetch("/ui/data", { cache: "no-store", credentials: "omit", headers });
    const asks = answer.status === 401;
    at("login").hidden = !asks;
    document.body.classList.toggle("locked", asks);
    at("refused").textContent = asks && token ? "This token is not known here, or is no longer valid." : "";
    if (asks) tell([]);
    else if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    else {
      data = await answer.json();
      draw();
      document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
    }
  } catch (error) {
    tell(["No answer from this node: " + error.message], "bad");
  }
  if (again) setTimeout(load, 5000);
}
at("strategy").onchange = draw;
addEventListener("resize", draw);
/* `load()` follows the modules of features. */
