// The page of `isotrope serve`: search as you type, compare two texts, see lines on a map. No library, no network but this server.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9"];
  // Groups differ in shape as well as in colour.
  const SHAPES = [
    (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
    (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (r) => `M0,${-1.25 * r}L${1.2 * r},${0.9 * r}H${-1.2 * r}z`,
    (r) => `M0,${-1.35 * r}L${1.35 * r},0L0,${1.35 * r}L${-1.35 * r},0z`,
    (r) => `M${-r},${-0.4 * r}h${0.6 * r}v${-0.6 * r}h${0.8 * r}v${0.6 * r}h${0.6 * r}v${0.8 * r}h${-0.6 * r}v${0.6 * r}h${-0.8 * r}v${-0.6 * r}h${-0.6 * r}z`,
    (r) => `M0,${1.25 * r}L${1.2 * r},${-0.9 * r}H${-1.2 * r}z`,
  ];
  const EXAMPLE = [
    "A man plays the guitar on the street.", "Someone plays a guitar outside.", "The band is on stage.",
    "She sings in a choir.", "A dog runs across the beach.", "A puppy is running on the sand.",
    "The cat sleeps on the sofa.", "Two dogs play in the snow.", "The chef bakes fresh bread.",
    "Fresh bread is baked by the chef.", "He stirs the soup in the kitchen.", "A woman is slicing an onion.",
    "The rocket lands near the crater.", "Astronauts repair the station.", "The moon is far away.",
    "A dog runs across the beach.",
  ].join("\n");
  let key = null;
  const open = new Map(); // the request that each part of the page waits for

  const node = (name, attributes = {}, text) => {
    const made = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const drawn = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    return made;
  };

  // One request at a time for each part; a newer one takes the place of the older, which the server then drops.
  const ask = async (part, path, body) => {
    open.get(part)?.abort();
    const control = new AbortController();
    open.set(part, control);
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    const options = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(path, { ...options, signal: control.signal });
    const found = await answer.json();
    if (answer.status === 401) $("key-form").hidden = false;
    if (!answer.ok) throw new Error(typeof found.error === "string" ? found.error : found.error.message);
    return found;
  };
  const say = (part, text, wrong = false) => {
    $(`${part}-status`).replaceChildren(...[text].flat());
    $(`${part}-status`).classList.toggle("wrong", wrong);
  };
  const guarded = (part, work) => async () => {
    try {
      await work();
    } catch (error) {
      if (error.name !== "AbortError") say(part, error instanceof TypeError ? "The server does not answer." : error.message, true);
    }
  };
  const soon = (work, milliseconds) => {
    let timer;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(work, milliseconds);
    };
  };
  const model = () => ({ model: $("model").value || undefined });
  const cutNote = (found) =>
    found.cut_inputs ? ` ${found.cut_inputs} ${found.cut_inputs > 1 ? "texts were" : "text was"} longer than the model reads, and cut.` : "";

  // ---- search
  const RERANKED = 30;
  const search = guarded("search", async () => {
    const query = $("query").value;
    if (!query.trim()) {
      open.get("search")?.abort();
      $("hits").replaceChildren();
      say("search", "");
      return;
    }
    const rerank = $("rerank").checked ? RERANKED : undefined;
    const found = await ask("search", "search", { query, mode: $("mode").value, top: 12, rerank });
    $("hits").replaceChildren(...found.hits.map(shownHit));
    say("search", `${found.hits.length || "No"} ${found.hits.length === 1 ? "result" : "results"}.${cutNote(found)}`);
  });
  const shownHit = (hit) => {
    const row = node("li");
    const letters = [...hit.text]; // marks count characters, JavaScript halves of them
    let place = 0;
    for (const [start, end] of hit.marks ?? []) {
      row.append(letters.slice(place, start).join(""), node("mark", {}, letters.slice(start, end).join("")));
      place = end;
    }
    row.append(letters.slice(place).join(""));
    const columns = Object.entries(hit.columns ?? {}).map(([name, value]) => `${name} ${value}`);
    const passage = hit.passage && hit.passage.of > 1 ? [`passage ${hit.passage.number} of ${hit.passage.of}`] : [];
    const named = hit.id === undefined || hit.id === null ? [] : [hit.id];
    const parts = [`${hit.score.toFixed(3)}`, ...named, `${hit.file ? `${hit.file}, ` : ""}line ${hit.line}`, ...passage, ...columns];
    row.append(node("span", { class: "from" }, parts.join(" · ")));
    return row;
  };

  // ---- compare
  const compare = guarded("compare", async () => {
    const [first, second] = [$("first").value, $("second").value];
    if (!first.trim() || !second.trim()) {
      open.get("compare")?.abort();
      $("carried").replaceChildren();
      $("bar").style.width = "0";
      say("compare", "Write two texts.");
      return;
    }
    const found = await ask("compare", "compare", { first, second, ...model() });
    $("bar").style.width = `${Math.max(0, found.similarity) * 100}%`;
    say("compare", [node("b", {}, found.similarity.toFixed(2)), ` cosine similarity.${cutNote(found)}`]);
    $("carried").replaceChildren(shownWords(found.first, "First"), shownWords(found.second, "Second"));
  });
  const shownWords = (pieces, name) => {
    const most = Math.max(0.02, ...pieces.map((piece) => Math.abs(piece.weight ?? 0)));
    const row = node("p", { "aria-label": `${name} text, its words by weight` });
    for (const piece of pieces) {
      if (piece.weight === null) {
        row.append(piece.text);
        continue;
      }
      const share = piece.weight / most;
      const level = share < -0.25 ? "against" : share > 0.66 ? "w3" : share > 0.33 ? "w2" : share > 0.12 ? "w1" : "";
      const said = level === "against" ? "stands against it" : level ? "carries it" : "";
      const word = node("span", { class: `word ${level}`, title: `${piece.weight > 0 ? "+" : ""}${piece.weight.toFixed(3)} ${said}` }, piece.text);
      row.append(word);
    }
    return row;
  };

  // ---- map
  const HINT = "Point at a mark to read its line; with the keyboard, Tab and the arrow keys.";
  let shown = null; // { lines, points, groups }
  let only = null; // the group that is looked at
  const map = guarded("map", async () => {
    const lines = $("lines").value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (lines.length < 2) {
      open.get("map")?.abort();
      say("map", "Paste at least two lines.");
      return;
    }
    say("map", `Placing ${lines.length} lines …`);
    const found = await ask("map", "map", { lines, ...model() });
    shown = { lines, ...found };
    only = null;
    drawMap();
    const copies = found.duplicates.reduce((sum, one) => sum + one.lines.length - 1, 0);
    say("map", `${lines.length} lines in ${found.names.length} ${found.names.length > 1 ? "groups" : "group"}, ${copies || "no"} ${copies === 1 ? "duplicate" : "duplicates"}.${cutNote(found)}`);
  });
  const place = ([x, y]) => [x * 100, y * 68];
  const drawMap = () => {
    const { lines, points, groups, names, duplicates } = shown;
    const plane = $("plane");
    plane.replaceChildren();
    for (const one of duplicates)
      for (const row of one.lines.slice(1)) {
        const [[x1, y1], [x2, y2]] = [place(points[one.lines[0]]), place(points[row])];
        plane.append(drawn("line", { x1, y1, x2, y2, class: "tie" }));
      }
    const radius = lines.length > 150 ? 1.8 : lines.length > 50 ? 2.4 : 3.2;
    points.forEach((point, row) => {
      const [x, y] = place(point);
      const group = groups[row];
      const dot = drawn("path", {
        d: SHAPES[group % 6](radius), transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})`, fill: COLOURS[group % 6],
        class: `dot${only !== null && only !== group ? " dim" : ""}`, tabindex: row ? "-1" : "0", role: "img",
        "aria-label": `${lines[row]} (${names[group]})`, "data-row": row,
      });
      dot.addEventListener("focus", () => read(row));
      dot.addEventListener("mouseenter", () => read(row));
      dot.addEventListener("click", () => dot.focus());
      plane.append(dot);
    });
    $("groups").replaceChildren(...names.map((name, group) => {
      const item = node("li");
      const button = node("button", { type: "button", "aria-pressed": String(only === group) });
      const sign = drawn("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" });
      sign.append(drawn("path", { d: SHAPES[group % 6](4), fill: COLOURS[group % 6] }));
      button.append(sign, `${name} (${groups.filter((one) => one === group).length})`);
      button.addEventListener("click", () => {
        only = only === group ? null : group;
        drawMap();
        $("groups").querySelectorAll("button")[group].focus();
      });
      item.append(button);
      return item;
    }));
    const list = node("ul");
    for (const one of duplicates.slice(0, 20)) {
      const others = one.lines.slice(1).map((row) => `“${lines[row]}”`);
      const how = one.equal ? "the same as" : `nearly (${one.cosine.toFixed(2)})`;
      list.append(node("li", {}, `“${lines[one.lines[0]]}” is ${how} ${others.slice(0, 3).join(", ")}${others.length > 3 ? " …" : ""}`));
    }
    $("doubles").replaceChildren(...(duplicates.length ? [node("h3", {}, "Duplicates"), list] : []));
    $("point").textContent = HINT;
    drawLabels(radius);
  };
  // The beginning of a line next to its mark, wherever it covers nothing.
  const drawLabels = (radius) => {
    const box = $("plane").getBoundingClientRect();
    const unit = Math.max(220 / Math.max(box.width, 1), 156 / Math.max(box.height, 1)); // of the drawing, in a pixel
    const size = 11 * unit;
    const boxes = shown.points.map((point) => [place(point)[0] - radius, place(point)[1] - radius, place(point)[0] + radius, place(point)[1] + radius]);
    shown.points.forEach((point, row) => {
      if (only !== null && only !== shown.groups[row]) return;
      const [x, y] = place(point);
      const letters = [...shown.lines[row]];
      const text = letters.length > 24 ? `${letters.slice(0, 23).join("")}…` : letters.join("");
      const label = drawn("text", { y: y + size * 0.35, "font-size": size, "aria-hidden": "true" });
      label.textContent = text;
      $("plane").append(label);
      const width = label.getComputedTextLength();
      const free = [x + radius + 2 * unit, x - radius - 2 * unit - width].find((left) => {
        const box = [left, y - size * 0.6, left + width, y + size * 0.6];
        const inside = box[0] > -110 && box[2] < 110;
        return inside && boxes.every((other, at) => at === row || other[0] > box[2] || other[2] < box[0] || other[1] > box[3] || other[3] < box[1]);
      });
      if (free === undefined) {
        label.remove();
        return;
      }
      label.setAttribute("x", free);
      boxes.push([free, y - size * 0.6, free + width, y + size * 0.6]);
    });
  };
  const read = (row) => {
    for (const dot of $("plane").querySelectorAll(".here")) dot.classList.remove("here");
    $("plane").querySelector(`[data-row="${row}"]`)?.classList.add("here");
    $("point").textContent = `${shown.lines[row]} · ${shown.names[shown.groups[row]]}`;
  };
  // An arrow key goes to the nearest point in its direction.
  const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  $("plane").addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const from = Number(event.target.dataset?.row);
    if (!step || !shown || Number.isNaN(from)) return;
    event.preventDefault();
    const [x, y] = place(shown.points[from]);
    let best = null;
    shown.points.forEach((point, row) => {
      const [dx, dy] = [place(point)[0] - x, place(point)[1] - y];
      const along = dx * step[0] + dy * step[1];
      if (row === from || along <= 0.01) return;
      const far = along + 2 * Math.abs(dx * step[1] + dy * step[0]);
      if (!best || far < best[0]) best = [far, row];
    });
    if (!best) return;
    for (const dot of $("plane").querySelectorAll(".dot")) dot.setAttribute("tabindex", Number(dot.dataset.row) === best[1] ? "0" : "-1");
    $("plane").querySelector(`[data-row="${best[1]}"]`).focus();
  });

  // ---- the start
  const start = async () => {
    let facts;
    try {
      facts = await ask("info", "info");
    } catch (error) {
      $("about").textContent = error.message;
      return;
    }
    $("key-form").hidden = true;
    const cut = facts.index && facts.index.cut ? `, ${facts.index.cut.toLocaleString("en")} of them cut` : "";
    const units = facts.index?.passages ? "passages" : "texts";
    const rows = facts.index ? ` · ${facts.index.rows.toLocaleString("en")} ${units} to search${cut}` : "";
    const reads = facts.max_input_length < 1e6 ? `reads ${facts.max_input_length.toLocaleString("en")} tokens` : "reads texts of any length";
    $("about").textContent = `${facts.models.map((one) => one.model_id).join(", ")} · ${facts.dimension} dimensions · ${reads}${rows}`;
    $("model").replaceChildren(...facts.models.map((one) => node("option", {}, one.model_id)));
    $("model-label").hidden = facts.models.length < 2;
    $("use").hidden = Boolean(facts.index);
    $("snippet").textContent = [
      "from openai import OpenAI", "",
      `client = OpenAI(base_url="${location.origin}/v1", api_key="${key ? "…" : "none"}")`,
      `answer = client.embeddings.create(model="${facts.model_id}", input=["a text"])`,
    ].join("\n");
    if (facts.index) {
      $("search").hidden = false;
      document.querySelector("main").classList.add("indexed");
      for (const option of $("mode").options) option.hidden = option.disabled = !(facts.index.modes ?? ["hybrid", "dense", "lexical"]).includes(option.value);
      $("rerank-label").hidden = !facts.index.rerank;
      $("mode").value = [...$("mode").options].find((option) => !option.disabled)?.value ?? "hybrid";
      $("query").focus();
    }
    compare();
    map();
  };
  $("lines").value = EXAMPLE;
  $("query").addEventListener("input", soon(search, 90));
  $("mode").addEventListener("change", search);
  $("rerank").addEventListener("change", search);
  for (const id of ["first", "second"]) $(id).addEventListener("input", soon(compare, 200));
  $("lines").addEventListener("input", soon(map, 500));
  $("model").addEventListener("change", () => (compare(), map()));
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    key = $("key").value;
    start();
  });
  start();
})();
