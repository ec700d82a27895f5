/* The history of decisions on the page: charts, strategies, consumers, nodes. */
const shape = (name, attributes) => { const it = document.createElementNS("http://www.w3.org/2000/svg", name); for (const key in attributes) it.setAttribute(key, attributes[key]); return it; };
const KINDS = [["allowed", "allowed", ["allowed", "allow_list"]], ["denied", "denied", ["denied", "never", "deny_list", "banned"]],
  ["degraded", "answered by policy", ["degraded_allowed", "degraded_denied"]], ["error", "error", ["error"]],
  ["uncharged", "passed without a charge", ["peeked", "repeated"]], ["other", "other outcomes", []]];
/* The outcomes of each column of the table. What no column names, of a later version of Weir, is in the last one. */
const COLUMNS = [["allowed", ["allowed"]], ["denied", ["denied", "never"]], ["by allow list", ["allow_list"]], ["by deny list", ["deny_list"]],
  ["banned", ["banned"]], ["by policy", ["degraded_allowed", "degraded_denied"]], ["errors", ["error"]], ["peeked", ["peeked"]],
  ["repeated", ["repeated"]], ["other", []]];
/* What limits deny. Deny lists and bans are no limits. */
const LIMITED = COLUMNS[1][1];
const placeOf = (list, outcome) => { const place = list.findIndex(one => one.at(-1).includes(outcome)); return place < 0 ? list.length - 1 : place; };
const COLORS = 8;
const clock = (second, exact) => new Date(second * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined, hourCycle: "h23" });

/* A strategy keeps its colour: it follows from its name, and a name that comes later takes one that is free. */
const colors = new Map();
function colorOf(strategy) {
  if (!colors.has(strategy)) {
    let hash = 0;
    for (const char of strategy) hash = (hash * 31 + char.codePointAt(0)) % 65521;
    const taken = new Set(colors.values()), free = Array.from({ length: COLORS }, (_, step) => (hash + step) % COLORS);
    colors.set(strategy, free.find(one => !taken.has(one)) ?? free[0]);
  }
  return `var(--s${colors.get(strategy)})`;
}
const span = us => us === null ? "–" : us >= 1e6 ? (us / 1e6).toFixed(1) + " s" : us >= 1e3 ? (us / 1e3).toFixed(us < 1e4 ? 1 : 0) + " ms" : Math.round(us) + " µs";

/* A number that is round and not below `most`. */
function roof(most) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return [1, 2, 4, 5, 10].map(factor => factor * unit).find(round => round >= most) || most;
}

/* Draws layers of values by time: stacked bars, or lines. The last time is not over, and is drawn as unfinished. */
function chart(id, times, layers, { lines = false, format = short, every = [10, 20], exact = false, span = "the last hour" } = {}) {
  const svg = at(id), box = svg.getBoundingClientRect(), width = box.width, height = box.height;
  const left = 44, bottom = height - 20, top = 8, right = width - 4, running = times.length - 1;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const sum = place => layers.reduce((sum, layer) => sum + (layer.values[place] || 0), 0);
  const peak = place => lines ? Math.max(...layers.map(layer => layer.values[place] || 0)) : sum(place);
  const most = roof(Math.max(...times.map((_, place) => peak(place)), 1));
  const x = place => left + (right - left) * place / times.length;
  const y = value => bottom - (bottom - top) * value / most;
  for (const part of [0, .5, 1]) {
    svg.append(shape("line", { x1: left, x2: right, y1: y(most * part), y2: y(most * part), stroke: "var(--grid)" }));
    const label = shape("text", { x: left - 8, y: y(most * part) + 4, "text-anchor": "end" });
    label.textContent = format(most * part);
    svg.append(label);
  }
  times.forEach((time, place) => {
    if (time % (60 * every[width < 420 ? 1 : 0])) return;
    const label = shape("text", { x: x(place + .5), y: height - 4, "text-anchor": "middle" });
    label.textContent = clock(time);
    if (x(place + .5) > left + 12 && x(place + .5) < right - 14) svg.append(label);
  });
  const wide = times.length > 60 ? (right - left) / times.length : Math.max((right - left) / times.length - 1, 1);
  if (lines) {
    for (const layer of layers) {
      let path = "", drawn = false;
      const point = (place, value) => `${x(place + .5).toFixed(1)} ${y(value).toFixed(1)}`;
      layer.values.forEach((value, place) => {
        if (value === null) { drawn = false; return; }
        const alone = layer.values[place - 1] == null && layer.values[place + 1] == null;
        if (alone) svg.append(shape("circle", { cx: x(place + .5), cy: y(value), r: 2.5, fill: layer.color, class: place === running ? "running" : "" }));
        if (place === running && drawn) {
          const last = `M${point(place - 1, layer.values[place - 1])}L${point(place, value)}`;
          svg.append(shape("path", { d: last, fill: "none", stroke: layer.color, "stroke-width": 2, "stroke-dasharray": "2 3", class: "running" }));
          return;
        }
        path += `${drawn ? "L" : "M"}${point(place, value)}`;
        drawn = true;
      });
      svg.append(shape("path", { d: path, fill: "none", stroke: layer.color, "stroke-width": times.length > 60 ? 1.5 : 2, "stroke-linejoin": "round" }));
    }
  } else {
    times.forEach((_, place) => {
      let below = 0;
      for (const layer of layers) {
        const value = layer.values[place] || 0;
        if (!value) continue;
        const high = Math.max(y(below) - y(below + value), 1);
        svg.append(shape("rect", { x: x(place), y: y(below) - high, width: wide, height: high, fill: layer.color, class: place === running ? "running" : "" }));
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
  if (!times.some((_, place) => peak(place) > 0)) {
    const none = shape("text", { x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" });
    none.textContent = "nothing in " + span;
    svg.append(none);
  }
  svg.onpointerleave = () => { at("tip").hidden = true; };
  svg.onpointermove = event => {
    const place = Math.floor((event.clientX - svg.getBoundingClientRect().left - left) / (right - left) * times.length);
    if (!(place in times)) { at("tip").hidden = true; return; }
    const values = layers.filter(layer => layer.values[place]).map(layer => `\n${layer.name}: ${format(layer.values[place])}`);
    const tip = at("tip");
    tip.textContent = clock(times[place], exact) + (place === running ? ", not over yet" : "") + (values.join("") || "\nnothing");
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  };
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

const total = values => values.reduce((sum, value) => sum + value, 0);

/* A layer for each strategy: at most eight, and the rest as one. */
function byStrategy(list, times, outcomes, scale = 1) {
  const sums = new Map();
  for (const one of list) {
    if (!outcomes.includes(one.outcome)) continue;
    const values = sums.get(one.strategy) || times.map(() => 0);
    one.points.forEach((calls, place) => { values[place] += calls / scale; });
    sums.set(one.strategy, values);
  }
  const all = [...sums].filter(([, values]) => total(values) > 0).sort((a, b) => total(b[1]) - total(a[1]));
  const layers = all.slice(0, COLORS - 1).map(([name, values]) => ({ name, values, color: colorOf(name) }));
  const rest = all.slice(COLORS - 1);
  if (rest.length) layers.push({ name: `${rest.length} others`, color: "var(--dim)", values: times.map((_, place) => rest.reduce((sum, one) => sum + one[1][place], 0)) });
  return layers.sort((a, b) => a.name < b.name ? -1 : 1);
}

function byOutcome(list, times) {
  const layers = KINDS.map(([kind, name]) => ({ name, color: color(kind), values: times.map(() => 0) }));
  for (const one of list) one.points.forEach((calls, place) => { layers[placeOf(KINDS, one.outcome)].values[place] += calls; });
  return layers;
}

const shown = layers => layers.filter((layer, place) => place < 2 || total(layer.values) > 0);

function hour(series) {
  const minutes = Array.from({ length: 60 }, (_, place) => data.from + 60 * place);
  const layers = byOutcome(series, minutes);
  chart("outcomes", minutes, shown(layers));
  const [allowed, denied, degraded, errors, free] = layers.map(layer => total(layer.values));
  const all = allowed + denied + degraded + errors;
  at("rate").textContent = short(layers.reduce((sum, layer) => sum + layer.values[58], 0) / 60);
  at("free").textContent = "last whole minute" + (free ? `; ${short(free)} of the hour without a charge` : "");
  at("share").textContent = all ? (100 * denied / all).toFixed(1) + " %" : "–";
  const count = outcome => total(series.filter(one => one.outcome === outcome).map(one => total(one.points)));
  const listed = count("deny_list"), banned = count("banned");
  at("denied").textContent = `${short(denied)} of ${short(all)}, last hour` + (listed ? `; ${short(listed)} by lists` : "") + (banned ? `; ${short(banned)} banned` : "");
  at("policy").textContent = short(degraded + errors);
  at("errors").textContent = "without the store, last hour" + (errors ? `; ${short(errors)} errors` : "");
  chart("denials", minutes, byStrategy(series, minutes, LIMITED));
  const took = minutes.map(minute => data.latency.find(one => one.at === minute) || { p50_us: null, p99_us: null });
  chart("latency", minutes, [{ name: "p99", color: color("p99"), values: took.map(one => one.p99_us) },
    { name: "p50", color: color("p50"), values: took.map(one => one.p50_us) }], { lines: true, format: span });
  const last = took.filter(one => one.p99_us !== null).pop();
  at("p99").textContent = last ? span(last.p99_us) : "–";
  at("p50").textContent = last ? `p50 ${span(last.p50_us)}, this node` : "this node";
}

function tenMinutes(series) {
  const times = Array.from({ length: 600 }, (_, place) => data.seconds.from + place);
  const options = { every: [2, 2], exact: true, span: "the last ten minutes" };
  chart("seconds", times, shown(byOutcome(series, times)), options);
  chart("passed", times, byStrategy(series, times, KINDS[0][2]), { ...options, lines: true });
}

function strategies(series) {
  const rows = new Map();
  for (const one of series) {
    const key = JSON.stringify([one.strategy, one.pattern]), row = rows.get(key) || { ...one, all: 0, by: COLUMNS.map(() => 0), cost: 0 };
    row.all += one.calls; row.cost += one.outcome === "allowed" ? one.cost : 0;
    row.by[placeOf(COLUMNS, one.outcome)] += one.calls;
    rows.set(key, row);
  }
  const list = [...rows.values()].sort((a, b) => b.all - a.all);
  // Allowed and denied calls always have their columns; the others with their first call.
  const used = COLUMNS.map((_, place) => place).filter(place => place < 2 || list.some(row => row.by[place]));
  const named = row => { const dot = make("i"); dot.style.background = colorOf(row.strategy); const it = make("div"); it.append(dot, row.strategy); return it; };
  const decided = row => row.all - COLUMNS.reduce((sum, [, outcomes], place) => sum + (KINDS[4][2].includes(outcomes[0]) ? row.by[place] : 0), 0);
  const share = row => decided(row) ? (100 * row.by[1] / decided(row)).toFixed(1) + " %" : "–";
  const cells = row => [[named(row), make("small", row.pattern || "no pattern", "narrow")], row.pattern || "–", short(row.all), ...used.map(place => short(row.by[place])), share(row), short(row.cost)];
  const head = used.map(place => [COLUMNS[place][0], COLUMNS[place][0] === "denied" ? "n" : "n wider"]);
  table("rows", [["strategy", ""], ["resources", "wider"], ["calls", "n"], ...head, ["denied %", "n wider"], ["cost", "n wider"]],
    list.map(cells), "no decisions in the last hour");
}

/* The nodes of the deployment. */
function deployment() {
  const running = data.nodes.filter(one => one.ended === null), ended = data.nodes.filter(one => one.ended !== null);
  at("nodes").textContent = (running.length > 1 ? `${running.length} nodes: ` : "node ") + running.map(one => one.name).join(", ");
  const when = second => new Date(second * 1000).toLocaleString();
  const row = one => [[make("div", one.name), make("small", one.address)], one.ended === null ? one.state.replace("_", " ") : `ended ${when(one.ended)}`,
    one.version, when(one.started), [make("div", one.files), make("small", `read ${when(one.files_read)}`)], one.control === "0" ? "–" : one.control];
  const head = [["node", ""], ["state", ""], ["version", "wider"], ["began", "wider"], ["files", ""], ["live control", "n wider"]];
  table("node-rows", head, running.map(row), "unknown");
  at("ended").hidden = !ended.length;
  table("ended-rows", head, ended.map(row), "none");
  const differ = of => new Set(running.map(of)).size > 1;
  at("nodes-note").textContent = differ(one => one.files) ? "nodes have different files" : differ(one => one.control) ? "a change of live control is on its way" : "all have the same files and the same version of live control";
}

modules.push(() => {
  const wanted = at("strategy").value, names = [...new Set(data.series.map(one => one.strategy))].sort();
  names.forEach(colorOf);
  const options = ["", ...names].map(name => { const it = make("option", name || "all strategies"); it.value = name; it.selected = name === wanted; return it; });
  at("strategy").hidden = false;
  if (at("strategy").length !== options.length) at("strategy").replaceChildren(...options);
});
modules.push(of => {
  hour(of(data.series));
  tenMinutes(of(data.seconds.series));
  strategies(of(data.series));
  consumers("top-denied", of(data.denied).slice(0, 10), "denied");
  consumers("top-allowed", of(data.allowed).slice(0, 10), "allowed");
  deployment();
});
