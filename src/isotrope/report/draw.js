// Draws the figures of the page from the values in it. No library: a scale, some marks, one tooltip.
(() => {
  "use strict";
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const tip = document.getElementById("tip");
  const hidden = new Set(); // subjects that the reader switched off
  const maps = []; // the panels of the map, to point at one sentence in all of them

  const make = (name, attributes, parent, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };

  // ---- scales ----
  const extent = (values) => [Math.min(...values), Math.max(...values)];
  const padded = ([low, high], share = 0.06) => {
    const room = (high - low || Math.abs(high) || 1) * share;
    return [low - room, high + room];
  };
  const linear =
    ([low, high], [from, to]) =>
    (value) =>
      from + ((value - low) / (high - low || 1)) * (to - from);
  const logarithmic = (domain, range) => {
    const inner = linear(domain.map(Math.log10), range);
    return (value) => inner(Math.log10(value));
  };
  const ticks = ([low, high], count, integers) => {
    const rough = (high - low) / Math.max(count, 1) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough) || 10 * power;
    if (integers) step = Math.max(1, Math.round(step));
    const found = [];
    for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9 * step; number++)
      found.push(number * step);
    return found;
  };
  const powers = ([low, high]) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const times of [1, 2, 5]) {
        const value = times * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    return found.length > 9
      ? found.filter((value) => Number.isInteger(Math.round(1e6 * Math.log10(value)) / 1e6))
      : found;
  };
  // All labels of an axis with as many decimals as the longest needs.
  const worded = (values) => {
    const decimals = Math.max(0, ...values.map((value) => (String(+value.toPrecision(6)).split(".")[1] || "").length));
    return (value) => value.toFixed(Math.min(decimals, 4)).replace("-", "−");
  };
  const plain = (value) => String(+value.toPrecision(6));

  // ---- marks ----
  const SHAPES = {
    circle: (r) => `M${r},0A${r},${r} 0 1 1 ${-r},0A${r},${r} 0 1 1 ${r},0Z`,
    square: (r) => `M${-r * 0.88},${-r * 0.88}H${r * 0.88}V${r * 0.88}H${-r * 0.88}Z`,
    triangle: (r) => `M0,${-r * 1.2}L${r * 1.1},${r * 0.8}H${-r * 1.1}Z`,
    diamond: (r) => `M0,${-r * 1.3}L${r * 1.3},0L0,${r * 1.3}L${-r * 1.3},0Z`,
  };
  const mark = (parent, series, x, y, r, extra = {}) =>
    make(
      "path",
      {
        d: SHAPES[series.marker](r),
        transform: `translate(${x},${y})`,
        fill: series.colour,
        stroke: "#fff",
        "stroke-width": 1,
        ...extra,
      },
      parent,
    );
  const path = (xs, ys, x, y) =>
    xs.map((value, i) => `${i ? "L" : "M"}${x(value).toFixed(1)},${y(ys[i]).toFixed(1)}`).join("");
  const key = (series, line) => {
    const svg = make("svg", {
      width: line ? 28 : 14,
      height: 14,
      viewBox: line ? "-14 -7 28 14" : "-7 -7 14 14",
      "aria-hidden": "true",
    });
    if (line)
      make(
        "line",
        {
          x1: -13,
          x2: 13,
          y1: 0,
          y2: 0,
          stroke: series.colour,
          "stroke-width": 2,
          "stroke-dasharray": series.dash || "none",
        },
        svg,
      );
    mark(svg, series, 0, 0, 5);
    return svg;
  };

  // ---- a frame with axes ----
  const frame = (holder, width, height, margin, label) => {
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    holder.append(svg);
    return { svg, left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
  };
  const axes = (box, x, y, xTicks, yTicks, xLabel, yLabel, xText = worded(xTicks), yText = worded(yTicks)) => {
    for (const tick of xTicks) {
      make("line", { class: "grid", x1: x(tick), x2: x(tick), y1: box.top, y2: box.bottom }, box.svg);
      make("text", { x: x(tick), y: box.bottom + 17, "text-anchor": "middle" }, box.svg, xText(tick));
    }
    for (const tick of yTicks) {
      make("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }, box.svg);
      make("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, box.svg, yText(tick));
    }
    make("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }, box.svg);
    if (xLabel)
      make("text", { x: (box.left + box.right) / 2, y: box.bottom + 38, "text-anchor": "middle" }, box.svg, xLabel);
    if (yLabel)
      make(
        "text",
        { transform: `translate(${box.left - 50},${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" },
        box.svg,
        yLabel,
      );
  };

  // ---- the tooltip ----
  // Next to the pointer; ``under`` a figure where there is room, so that its neighbours stay in sight.
  const place = (event, under) => {
    const box = tip.getBoundingClientRect();
    const x = event.clientX + 16 + box.width > innerWidth ? event.clientX - box.width - 16 : event.clientX + 16;
    let y = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 16 : event.clientY + 16;
    if (under !== undefined && under + box.height + 8 < innerHeight) y = under + 8;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${Math.max(8, y)}px`;
  };
  const listen = (box, points, enter, leave, below) => {
    let last = null;
    const out = () => {
      tip.hidden = true;
      if (last) leave(last);
      last = null;
    };
    const move = (event) => {
      const own = box.svg.getBoundingClientRect();
      const scale = box.svg.viewBox.baseVal.width / own.width;
      const [x, y] = [(event.clientX - own.left) * scale, (event.clientY - own.top) * scale];
      let best = null;
      let reach = 24 ** 2;
      for (const point of points) {
        const lead = point.large ? 25 : 0; // a model before a checkpoint under it
        const away = (point.x - x) ** 2 + (point.y - y) ** 2 - lead;
        if (away < reach) [best, reach] = [point, away];
      }
      if (!best) return out();
      if (best !== last) {
        if (last) leave(last);
        enter(best);
        last = best;
      }
      tip.hidden = false;
      place(event, below ? own.bottom : undefined);
    };
    box.svg.addEventListener("pointermove", move);
    box.svg.addEventListener("pointerdown", move);
    box.svg.addEventListener("pointerleave", out);
  };
  const describe = (box, points) => {
    let ring = null;
    listen(
      box,
      points,
      (point) => {
        tip.textContent = point.hover;
        ring = make(
          "circle",
          {
            cx: point.x,
            cy: point.y,
            r: 9,
            fill: "none",
            stroke: "#1b1f24",
            "stroke-width": 1.5,
            "pointer-events": "none",
          },
          box.svg,
        );
      },
      () => ring && ring.remove(),
    );
  };

  // ---- charts ----
  const lines = (holder, figure, panel, series, width) => {
    const height = Math.round(Math.min(300, Math.max(220, width * 0.62)));
    const label = figure.y.label;
    const box = frame(
      holder,
      width,
      height,
      { left: label ? 64 : 40, right: 14, top: 12, bottom: 46 },
      panel.title || figure.title,
    );
    const y0 = figure.y;
    const x0 = figure.x;
    const xs = extent(series.flatMap((one) => one.x));
    const ys = extent(series.flatMap((one) => one.y));
    const log = y0.scale === "log";
    const domain = log ? [ys[0] / 1.1, ys[1] * 1.1] : padded(ys);
    const across = x0.scale === "log";
    const x = across
      ? logarithmic([xs[0] / 1.05, xs[1] * 1.05], [box.left, box.right])
      : linear(padded(xs, 0.02), [box.left, box.right]);
    const y = (log ? logarithmic : linear)(domain, [box.bottom, box.top]);
    const xTicks = across ? powers(xs) : ticks(xs, width / 90, x0.integers);
    const yTicks = log ? powers(domain) : ticks(domain, 5);
    axes(box, x, y, xTicks, yTicks, x0.label, label, across ? plain : undefined, log ? plain : undefined);
    const points = [];
    for (const one of series) {
      make(
        "path",
        {
          d: path(one.x, one.y, x, y),
          fill: "none",
          stroke: one.colour,
          "stroke-width": 2,
          "stroke-dasharray": one.dash || "none",
          "stroke-linejoin": "round",
        },
        box.svg,
      );
      one.x.forEach((value, i) => {
        if (one.dots) mark(box.svg, one, x(value), y(one.y[i]), 3.5);
        points.push({ x: x(value), y: y(one.y[i]), hover: one.hover[i] });
      });
      if (one.chosen !== undefined)
        make(
          "circle",
          {
            cx: x(one.x[one.chosen]),
            cy: y(one.y[one.chosen]),
            r: 8,
            fill: "none",
            stroke: one.colour,
            "stroke-width": 2,
          },
          box.svg,
        );
    }
    describe(box, points);
  };

  // A name next to its mark: right of it, or left, or above where neither has room; higher while another name is there.
  const label = (box, name, px, py, others) => {
    const node = make("text", { class: "strong halo" }, box.svg, name);
    const long = node.getComputedTextLength();
    const room = { right: px + 13 + long < box.right + 12, left: px - 13 - long > box.left };
    const from = room.right
      ? px + 13
      : room.left
        ? px - 13 - long
        : Math.max(box.left, Math.min(box.right - long, px - long / 2));
    let line = room.right || room.left ? py + 4 : py - 14;
    while (others.some((other) => Math.abs(other.line - line) < 15 && other.from < from + long && other.to > from))
      line -= 15;
    node.setAttribute("x", from);
    node.setAttribute("y", line);
    return { line, from, to: from + long };
  };
  const plane = (holder, figure, panel, series, width) => {
    const height = Math.round(Math.min(400, Math.max(280, width * 0.72)));
    const box = frame(
      holder,
      width,
      height,
      { left: 64, right: 16, top: 14, bottom: 46 },
      `${figure.title}: ${panel.title}`,
    );
    const all = (axis) => series.flatMap((one) => [...one[axis], ...(one.trail ? one.trail[axis] : [])]);
    const [xs, ys] = [padded(extent(all("x")), 0.14), padded(extent(all("y")), 0.14)];
    const [x, y] = [linear(xs, [box.left, box.right]), linear(ys, [box.bottom, box.top])];
    axes(box, x, y, ticks(xs, width / 90), ticks(ys, 6), figure.x.label, figure.y.label);
    make("text", { x: box.left + 8, y: box.bottom - 8 }, box.svg, "↙ better");
    const points = [];
    for (const one of series.filter((one) => one.trail)) {
      const { trail } = one;
      make(
        "path",
        {
          d: trail.loose ? "" : path(trail.x, trail.y, x, y),
          fill: "none",
          stroke: one.colour,
          "stroke-width": 1.5,
          "stroke-dasharray": one.dash || "none",
          opacity: 0.8,
        },
        box.svg,
      );
      trail.x.forEach((value, i) => {
        make(
          "circle",
          { cx: x(value), cy: y(trail.y[i]), r: 3, fill: one.colour, stroke: "#fff", "stroke-width": 0.75 },
          box.svg,
        );
        points.push({ x: x(value), y: y(trail.y[i]), hover: trail.hover[i] });
      });
    }
    const labels = [];
    for (const one of series) {
      const [px, py] = [x(one.x[0]), y(one.y[0])];
      mark(box.svg, one, px, py, 7.5);
      points.push({ x: px, y: py, hover: one.hover[0], large: true });
      labels.push(label(box, one.name, px, py, labels));
    }
    describe(box, points);
  };

  const intervals = (holder, figure, panel, series, width) => {
    const names = figure.y.categories;
    const row = Math.max(30, 13 * series.length + 12);
    const left = 18 + 7 * Math.max(...names.map((name) => name.length));
    const height = 12 + row * names.length + 46;
    const box = frame(holder, width, height, { left, right: 16, top: 6, bottom: 46 }, figure.title);
    const known = series.flatMap((one) => [...one.x, ...one.low, ...one.high]).filter((value) => value !== null);
    const xs = padded(extent(known));
    const x = linear(xs, [box.left, box.right]);
    const middle = (i) => box.top + row * (i + 0.5);
    axes(box, x, middle, ticks(xs, width / 80), [], figure.x.label, "");
    const points = [];
    names.forEach((name, i) => {
      if (i)
        make("line", { class: "grid", x1: 0, x2: box.right, y1: box.top + row * i, y2: box.top + row * i }, box.svg);
      make("text", { class: "strong", x: 0, y: middle(i) + 4 }, box.svg, name);
      series.forEach((one, place) => {
        const y = middle(i) + 13 * (place - (series.length - 1) / 2);
        if (one.low[i] !== null)
          make(
            "line",
            {
              x1: x(one.low[i]),
              x2: x(one.high[i]),
              y1: y,
              y2: y,
              stroke: one.colour,
              "stroke-width": 3,
              opacity: 0.4,
              "stroke-linecap": "round",
            },
            box.svg,
          );
        mark(box.svg, one, x(one.x[i]), y, 5);
        points.push({ x: x(one.x[i]), y, hover: one.hover[i] });
      });
    });
    describe(box, points);
  };

  const ridges = (holder, figure, panel, series, width) => {
    const row = 44;
    const height = 40 + row * series.length + 46;
    const box = frame(
      holder,
      width,
      height,
      { left: 58, right: 14, top: 40, bottom: 46 },
      `${figure.title}: ${panel.title}`,
    );
    const x = linear(figure.x.domain, [box.left, box.right]);
    const top = figure.y.highest;
    axes(box, x, (value) => value, ticks(figure.x.domain, width / 55), [], figure.x.label, "");
    const points = [];
    [...series].reverse().forEach((one, i) => {
      const base = box.top + row * (i + 1);
      const y = linear([0, top], [base, base - row * 1.7]);
      const outline = path(one.x, one.y, x, y);
      make(
        "path",
        {
          d: `${outline}L${x(one.x[one.x.length - 1])},${base}L${x(one.x[0])},${base}Z`,
          fill: one.colour,
          "fill-opacity": 0.75,
          stroke: "#fff",
          "stroke-width": 1,
        },
        box.svg,
      );
      make("line", { class: "grid", x1: box.left, x2: box.right, y1: base, y2: base }, box.svg);
      make("text", { x: box.left - 8, y: base - 1, "text-anchor": "end" }, box.svg, one.name);
      if (one.median !== undefined) {
        make(
          "line",
          { x1: x(one.median), x2: x(one.median), y1: base, y2: base - 12, stroke: "#1b1f24", "stroke-width": 2 },
          box.svg,
        );
        for (let up = 4; up < row; up += 8) points.push({ x: x(one.median), y: base - up, hover: one.hover[0] });
      }
    });
    make("text", { x: 0, y: 14 }, box.svg, figure.y.label);
    describe(box, points);
  };

  const map = (holder, figure, panel, series, width) => {
    const box = frame(
      holder,
      width,
      width,
      { left: 4, right: 4, top: 4, bottom: 4 },
      `${figure.title}: ${panel.title}`,
    );
    make(
      "rect",
      { x: 0.5, y: 0.5, width: width - 1, height: width - 1, rx: 6, fill: "#fff", stroke: "#d8dee4" },
      box.svg,
    );
    const inner = [14, width - 14];
    const x = linear(padded(extent(series.flatMap((one) => one.x)), 0), inner);
    const y = linear(padded(extent(series.flatMap((one) => one.y)), 0), [...inner].reverse());
    const r = series.reduce((sum, one) => sum + one.x.length, 0) > 500 ? 2.6 : 3.6;
    const points = [];
    const at = new Map();
    for (const one of series)
      one.rows.forEach((row, i) => {
        const point = { x: x(one.x[i]), y: y(one.y[i]), row, colour: one.colour, group: one.name };
        make(
          "circle",
          {
            cx: point.x.toFixed(1),
            cy: point.y.toFixed(1),
            r,
            fill: one.colour,
            "fill-opacity": 0.75,
            "data-row": row,
          },
          box.svg,
        );
        points.push(point);
        at.set(row, point);
      });
    const over = make("g", { class: "over", "pointer-events": "none" }, box.svg);
    maps.push({ name: panel.title, over, at, svg: box.svg });
    listen(
      box,
      points,
      (point) => show(panel.title, point),
      () => maps.forEach((one) => one.over.replaceChildren()),
      true,
    );
  };
  const show = (name, point) => {
    const { texts, near } = report.map;
    tip.textContent = texts[point.row];
    const list = document.createElement("ol");
    list.className = "near";
    for (const row of near[name][point.row]) {
      const item = document.createElement("li");
      item.textContent = texts[row].length > 90 ? `${texts[row].slice(0, 90)}…` : texts[row];
      list.append(item);
    }
    tip.append(list);
    for (const one of maps) {
      one.over.replaceChildren();
      const own = one.at.get(point.row);
      for (const row of near[one.name][point.row]) {
        const other = one.at.get(row);
        make(
          "line",
          { x1: own.x, y1: own.y, x2: other.x, y2: other.y, stroke: "#1b1f24", "stroke-width": 1, opacity: 0.5 },
          one.over,
        );
        make(
          "circle",
          { cx: other.x, cy: other.y, r: 4.5, fill: other.colour, stroke: "#1b1f24", "stroke-width": 1 },
          one.over,
        );
      }
      make("circle", { cx: own.x, cy: own.y, r: 7, fill: own.colour, stroke: "#1b1f24", "stroke-width": 2 }, one.over);
    }
  };

  // ---- the page ----
  const CHARTS = { lines, plane, intervals, ridges, map };
  const draw = () => {
    maps.length = 0;
    tip.hidden = true;
    for (const holder of document.querySelectorAll("[data-figure]")) {
      const figure = report.figures[holder.dataset.figure];
      const panels = [...holder.querySelectorAll(".panel")];
      panels.forEach((panel, i) => {
        const values = figure.panels[i];
        const bySubject = figure.chart !== "map" && figure.chart !== "ridges";
        const series = values.series.filter((one) => !bySubject || !hidden.has(one.name));
        for (const old of panel.querySelectorAll("svg.chart, .chart svg")) old.remove();
        const chart = panel.querySelector(".chart");
        chart.replaceChildren();
        if (series.length)
          CHARTS[figure.chart](chart, figure, values, series, Math.max(260, Math.round(chart.clientWidth)));
      });
    }
  };
  for (const slot of document.querySelectorAll("[data-key]")) {
    const style = report.styles[slot.dataset.key] || { colour: slot.dataset.colour, marker: "circle", dash: "" };
    slot.replaceWith(key(style, slot.dataset.line !== undefined));
  }
  for (const button of document.querySelectorAll("button[data-subject]"))
    button.addEventListener("click", () => {
      const name = button.dataset.subject;
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      draw();
    });
  let width = 0;
  const redraw = () => {
    const now = document.documentElement.clientWidth;
    if (now !== width) {
      width = now;
      draw();
    }
  };
  redraw();
  addEventListener("resize", redraw);
})();
