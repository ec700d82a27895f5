"use strict";
const at = id => document.getElementById(id);
const make = (name, content, cls) => { const it = document.createElement(name); if (content !== undefined) it.textContent = content; if (cls) it.className = cls; return it; };
const shape = (name, attributes) => { const it = document.createElementNS("http://www.w3.org/2000/svg", name); for (const key in attributes) it.setAttribute(key, attributes[key]); return it; };
const color = name => `var(--${name})`;
const KINDS = [["allowed", "allowed", ["allowed", "allow_list"]], ["denied", "denied", ["denied", "never", "deny_list", "banned"]],
  ["degraded", "answered by policy", ["degraded_allowed", "degraded_denied"]], ["error", "error", ["error"]],
  ["uncharged", "passed without a charge", ["peeked", "repeated"]]];
const PALETTE = Array.from({ length: 8 }, (_, place) => `var(--s${place})`);
const clock = second => new Date(second * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
function short(number) {
  if (number >= 1e9) return (number / 1e9).toFixed(1) + "G";
  if (number >= 1e6) return (number / 1e6).toFixed(1) + "M";
  if (number >= 1e4) return (number / 1e3).toFixed(1) + "k";
  return number >= 100 || Number.isInteger(number) ? Math.round(number).toLocaleString("en") : number.toFixed(1);
}
const span = us => us === null ? "–" : us >= 1e6 ? (us / 1e6).toFixed(1) + " s" : us >= 1e3 ? (us / 1e3).toFixed(us < 1e4 ? 1 : 0) + " ms" : Math.round(us) + " µs";

/* A number that is round and not below `most`. */
function roof(most) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return [1, 2, 4, 5, 10].map(factor => factor * unit).find(round => round >= most) || most;
}

/* Draws layers of values by minute: stacked bars, or lines. */
function chart(id, minutes, layers, { lines = false, format = short } = {}) {
  const svg = at(id), box = svg.getBoundingClientRect(), width = box.width, height = box.height;
  const left = 44, bottom = height - 20, top = 8, right = width - 4;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const sum = place => layers.reduce((sum, layer) => sum + (layer.values[place] || 0), 0);
  const peak = place => lines ? Math.max(...layers.map(layer => layer.values[place] || 0)) : sum(place);
  const most = roof(Math.max(...minutes.map((_, place) => peak(place)), 1));
  const x = place => left + (right - left) * place / minutes.length;
  const y = value => bottom - (bottom - top) * value / most;
  for (const part of [0, .5, 1]) {
    svg.append(shape("line", { x1: left, x2: right, y1: y(most * part), y2: y(most * part), stroke: "var(--grid)" }));
    const label = shape("text", { x: left - 8, y: y(most * part) + 4, "text-anchor": "end" });
    label.textContent = format(most * part);
    svg.append(label);
  }
  const every = width < 420 ? 20 : 10;
  minutes.forEach((minute, place) => {
    if (Math.round(minute / 60) % every) return;
    const label = shape("text", { x: x(place + .5), y: height - 4, "text-anchor": "middle" });
    label.textContent = clock(minute);
    if (x(place + .5) > left + 12 && x(place + .5) < right - 14) svg.append(label);
  });
  const wide = Math.max((right - left) / minutes.length - 1, 1);
  if (lines) {
    for (const layer of layers) {
      let path = "", drawn = false;
      layer.values.forEach((value, place) => {
        if (value === null) { drawn = false; return; }
        path += `${drawn ? "L" : "M"}${x(place + .5).toFixed(1)} ${y(value).toFixed(1)}`;
        const alone = layer.values[place - 1] == null && layer.values[place + 1] == null;
        if (alone) svg.append(shape("circle", { cx: x(place + .5), cy: y(value), r: 2.5, fill: layer.color }));
        drawn = true;
      });
      svg.append(shape("path", { d: path, fill: "none", stroke: layer.color, "stroke-width": 2, "stroke-linejoin": "round" }));
    }
  } else {
    minutes.forEach((_, place) => {
      let below = 0;
      for (const layer of layers) {
        const value = layer.values[place] || 0;
        if (!value) continue;
        const high = Math.max(y(below) - y(below + value), 1);
        svg.append(shape("rect", { x: x(place), y: y(below) - high, width: wide, height: high, fill: layer.color }));
        below += value;
      }
    });
  }
  const legend = at(id + "-legend");
  legend.replaceChildren(...layers.map(layer => {
    const entry = make("span"), dot = make("i");
    dot.style.background = layer.color;
    entry.append(dot, layer.name);
    return entry;
  }));
  if (!minutes.some((_, place) => peak(place) > 0)) {
    const none = shape("text", { x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" });
    none.textContent = "nothing in the last hour";
    svg.append(none);
  }
  svg.onpointerleave = () => { at("tip").hidden = true; };
  svg.onpointermove = event => {
    const place = Math.floor((event.clientX - svg.getBoundingClientRect().left - left) / (right - left) * minutes.length);
    if (!(place in minutes)) { at("tip").hidden = true; return; }
    const values = layers.filter(layer => layer.values[place]).map(layer => `\n${layer.name}: ${format(layer.values[place])}`);
    const tip = at("tip");
    tip.textContent = clock(minutes[place]) + (values.join("") || "\nnothing");
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  };
}

function table(id, head, rows, empty) {
  const it = at(id);
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

function consumers(id, list, kind) {
  const most = Math.max(...list.map(one => one.calls), 1);
  const row = one => {
    const bar = make("div", "", "bar");
    bar.style.background = color(kind);
    bar.style.width = 100 * one.calls / most + "%";
    const off = one.error + one.sampling_error;
    return [[make("div", one.consumer), make("small", one.strategy, "narrow"), bar], one.strategy, [make("span", short(one.calls)), make("small", off ? ` ±${short(off)}` : "")]];
  };
  table(id, [["consumer", ""], ["strategy", "wider"], ["calls", "n"]], list.map(row), "nobody");
}

let data = null;
function draw() {
  if (!data) return;
  const wanted = at("strategy").value, names = [...new Set(data.series.map(one => one.strategy))].sort();
  const options = ["", ...names].map(name => { const it = make("option", name || "all strategies"); it.value = name; it.selected = name === wanted; return it; });
  if (at("strategy").length !== options.length) at("strategy").replaceChildren(...options);
  const series = data.series.filter(one => !wanted || one.strategy === wanted);
  const minutes = Array.from({ length: 60 }, (_, place) => data.from + 60 * place);
  const add = (list, pick) => minutes.map((_, place) => list.filter(pick).reduce((sum, one) => sum + one.points[place], 0));
  const total = values => values.reduce((sum, value) => sum + value, 0);
  const layers = KINDS.map(([kind, name, outcomes]) => ({ name, color: color(kind), values: add(series, one => outcomes.includes(one.outcome)) }));
  chart("outcomes", minutes, layers.filter((layer, place) => place < 2 || total(layer.values) > 0));
  const [allowed, denied, degraded, errors] = layers.map(layer => total(layer.values));
  const all = allowed + denied + degraded + errors;
  at("rate").textContent = short(layers.reduce((sum, layer) => sum + layer.values[58], 0) / 60);
  at("share").textContent = all ? (100 * denied / all).toFixed(1) + " %" : "–";
  at("denied").textContent = `${short(denied)} of ${short(all)}, last hour`;
  at("policy").textContent = short(degraded + errors);
  const of = KINDS[1][2], refused = names.filter(name => !wanted || name === wanted)
    .map(name => ({ name, values: add(series, one => one.strategy === name && of.includes(one.outcome)) }))
    .filter(one => total(one.values) > 0).sort((a, b) => total(b.values) - total(a.values));
  const rest = refused.slice(7), shownAlone = refused.slice(0, 7);
  if (rest.length) shownAlone.push({ name: `${rest.length} others`, values: minutes.map((_, place) => rest.reduce((sum, one) => sum + one.values[place], 0)) });
  chart("denials", minutes, shownAlone.map((one, place) => ({ ...one, color: PALETTE[place] })));
  const took = minutes.map(minute => data.latency.find(one => one.at === minute) || { p50_us: null, p99_us: null });
  chart("latency", minutes, [{ name: "p99", color: color("degraded"), values: took.map(one => one.p99_us) },
    { name: "p50", color: color("allowed"), values: took.map(one => one.p50_us) }], { lines: true, format: span });
  const last = took.filter(one => one.p99_us !== null).pop();
  at("p99").textContent = last ? span(last.p99_us) : "–";
  at("p50").textContent = last ? `p50 ${span(last.p50_us)}, this node` : "this node";
  const rows = new Map();
  for (const one of series) {
    const key = JSON.stringify([one.strategy, one.pattern]), row = rows.get(key) || { ...one, all: 0, no: 0, other: 0, free: 0, cost: 0 };
    row.all += one.calls; row.cost += one.outcome === "allowed" ? one.cost : 0;
    if (of.includes(one.outcome)) row.no += one.calls; else if (KINDS[4][2].includes(one.outcome)) row.free += one.calls; else if (!KINDS[0][2].includes(one.outcome)) row.other += one.calls;
    rows.set(key, row);
  }
  const cells = row => [[make("div", row.strategy), make("small", row.pattern || "no pattern", "narrow")], row.pattern || "–", short(row.all), short(row.no), row.all > row.free ? (100 * row.no / (row.all - row.free)).toFixed(1) + " %" : "–", short(row.other), short(row.cost)];
  table("rows", [["strategy", ""], ["resources", "wider"], ["calls", "n"], ["denied", "n"], ["denied %", "n wider"], ["by policy", "n wider"], ["cost", "n wider"]],
    [...rows.values()].sort((a, b) => b.all - a.all).map(cells), "no decisions in the last hour");
  const mine = list => list.filter(one => !wanted || one.strategy === wanted).slice(0, 10);
  consumers("top-denied", mine(data.denied), "denied");
  consumers("top-allowed", mine(data.allowed), "allowed");
  const state = data.health.startsWith("ready") ? ["good", "store ok"] : data.ready ? ["fair", "degraded"] : ["bad", "not ready"];
  at("store").className = "pill " + state[0];
  at("store").textContent = state[1];
  at("health").textContent = data.health.trim();
  at("nodes").textContent = (data.nodes.length > 1 ? `${data.nodes.length} nodes: ` : "node ") + data.nodes.join(", ");
  at("problem").hidden = !data.incomplete;
  at("problem").textContent = data.incomplete ? "Decisions of other nodes are missing: " + data.incomplete : "";
  at("foot").textContent = `Weir ${data.version}. Numbers of consumers are estimates. As of ${new Date(data.now * 1000).toLocaleTimeString()}.`;
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
    at("login").hidden = answer.status !== 401;
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    data = await answer.json();
    draw();
    document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
  } catch (error) {
    at("problem").hidden = false;
    at("problem").textContent = "No answer from this node: " + error.message;
  }
  if (again) setTimeout(load, 5000);
}
at("strategy").onchange = draw;
addEventListener("resize", draw);
load();
