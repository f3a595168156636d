"use strict";

const ARRAYS = { float64: Float64Array, float32: Float32Array, uint32: Uint32Array };

function decode({ dtype, base64 }) {
  return new ARRAYS[dtype](Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer);
}

function element(id) {
  return document.getElementById(id);
}

function load() {
  const data = JSON.parse(element("data").textContent);
  element("data").remove(); // the text takes as much memory as all the rest
  const decodeAll = (value) => {
    if (Array.isArray(value)) return value.map(decodeAll);
    if (value === null || typeof value !== "object") return value;
    if ("base64" in value) return decode(value);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, decodeAll(inner)]));
  };
  return decodeAll(data);
}

class Explorer {
  constructor(data) {
    this.data = data;
    this.inPlane = data.dim === 2;
    this.sweep = new Sweep(data.points, data.dim, data.levels, data.weights);
    this.stage = new Stage(element("shape"), data, this.sweep, data.map?.values);
    if (data.map) this.describeMap();
    if (data.warps.length) this.describeWarps();
    this.image = transformImage(data.transform, data.directions.length / data.dim, data.thresholds.length, data.limits);
    this.changed = { warp: data.warps.length > 0, direction: true, height: true, view: true };
    this.describe();
    this.listen();
    this.draw();
  }

  // The direction of the sliders. Cosines come from a table in which axes and diagonals are exact.
  get direction() {
    const cos = (degrees) => this.data.circle[2 * ((degrees % 360 + 360) % 360)], sin = (degrees) => cos(degrees - 90);
    const azimuth = Number(element("azimuth").value), elevation = Number(element("elevation").value);
    const [x, y] = [cos(azimuth), sin(azimuth)];
    return this.inPlane ? [x, y] : standing([cos(elevation) * x, cos(elevation) * y, sin(elevation)], this.data.up);
  }

  get threshold() {
    const slider = element("height"), steps = Number(slider.max);
    return (2 * Number(slider.value) - steps) * (this.data.radius / steps);
  }

  describe() {
    const { data } = this;
    document.body.classList.toggle("plane-only", this.inPlane);
    element("name").textContent = data.name;
    element("facts").textContent = data.facts;
    element("azimuth-label").textContent = this.inPlane ? "Direction" : "Azimuth";
    const colors = data.weighted && !data.map ? `color: weight, ${this.stage.weights.map((w) => number(w)).join(" (dark) to ")} (bright)` : "";
    const controls = this.inPlane ? "" : "drag or use the arrow keys to rotate, scroll to zoom";
    const warps = data.warps.length ? "the first slider warps the shape" : "";
    element("shape-hint").textContent = [warps, controls, colors].filter(Boolean).join("; ");
    const { low, high, clipped } = this.image, beyond = clipped ? `; values from ${number(low)} to ${number(high)}` : "";
    element("transform-hint").textContent = `click to select direction and height${beyond}`;
    element("shape").classList.toggle("rotatable", !this.inPlane);
    const row = (name, id) => {
      const tr = element("counts").insertRow(), head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      tr.append(head);
      tr.insertCell().className = "now";
      tr.insertCell();
      tr.id = id;
    };
    row("vertices", "count-1");
    for (const level of data.levels) row(level.name, `count-${level.rows}`);
  }

  // Values of the vertices as colors, with their null beside them.
  describeMap() {
    const { map } = this.data;
    for (const id of ["null", "shape-caption", "null-caption", "legend"]) element(id).hidden = false;
    element("maps").classList.add("beside");
    element("legend-sentence").textContent = map.sentence;
    element("legend-low").textContent = number(map.low);
    element("legend-high").textContent = number(map.high);
    element("legend-bar").style.background = `linear-gradient(to right, ${GRAY_RED.join(", ")})`;
    element("height").value = element("height").max; // the whole shape in full color
    this.nullStage = new Stage(element("null"), this.data, this.sweep, map.null);
  }

  // The shape with its vertices at other places, by name.
  describeWarps() {
    const { warps } = this.data, ends = [element("warp-from"), element("warp-to")];
    element("warp-controls").hidden = false;
    element("height").value = element("height").max; // the whole shape in full color
    for (const end of ends) end.append(...warps.map(({ name }, i) => new Option(name, i)));
    [ends[0].value, ends[1].value] = [0, Math.min(1, warps.length - 1)];
    for (const control of [...ends, element("warp")]) control.addEventListener("input", () => this.change("warp", "direction", "view"));
  }

  // Move the vertices. All parts of the page share their coordinates.
  warp() {
    const { warps, points } = this.data, fraction = Number(element("warp").value) / 100;
    const [from, to] = ["warp-from", "warp-to"].map((id) => warps[element(id).value]);
    for (let i = 0; i < points.length; i++) points[i] = (1 - fraction) * from.points[i] + fraction * to.points[i];
    element("warp").setAttribute("aria-valuetext", `${element("warp").value} % of the way from ${from.name} to ${to.name}`);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.transform(), this.slowTransform ? 200 : 0); // of large shapes when the slider rests
  }

  // The transform of the warped shape, in all directions.
  transform() {
    const begin = performance.now(), { data, sweep } = this, { directions, dim, thresholds, transform } = data;
    for (let i = 0; i < directions.length / dim; i++) {
      transform.set(sweep.curve(directions.subarray(i * dim, (i + 1) * dim), thresholds), i * thresholds.length);
    }
    this.image = transformImage(transform, directions.length / dim, thresholds.length, data.limits);
    this.slowTransform = performance.now() - begin > 30;
    this.change("direction");
  }

  change(...names) {
    if (!Object.values(this.changed).some(Boolean)) requestAnimationFrame(() => this.draw());
    for (const name of names) this.changed[name] = true;
  }

  draw() {
    const { direction, threshold, changed, data, sweep } = this;
    this.changed = { warp: false, direction: false, height: false, view: false };
    if (changed.warp) this.warp();
    if (changed.direction) {
      sweep.setDirection(direction);
      this.jumps = sweep.jumps();
      this.row = this.nearest(direction);
    }
    const below = sweep.below(threshold);
    const { yaw, pitch, zoom, coarse } = this.stage;
    if (this.nullStage) Object.assign(this.nullStage, { yaw, pitch, zoom, coarse });
    for (const stage of [this.stage, this.nullStage]) {
      if (changed.view) stage?.render();
      stage?.highlight(direction, threshold, changed.direction);
    }
    this.curveLayout = drawCurve(element("curve"), this.jumps, data.radius, data.weighted);
    markCurve(element("curve"), this.curveLayout, threshold, sweep.euler[below]);
    this.transformLayout = drawTransform(element("transform"), this.image, {
      radius: data.radius, threshold, row: this.row, rows: data.rows, weighted: data.weighted,
    });
    this.updateText(direction, threshold, below);
  }

  // Row of the image with the nearest direction.
  nearest(direction) {
    const { directions, dim } = this.data;
    let best = 0, largest = -Infinity;
    for (let i = 0; i < directions.length / dim; i++) {
      let product = 0;
      for (let axis = 0; axis < dim; axis++) product += directions[i * dim + axis] * direction[axis];
      if (product > largest) [best, largest] = [i, product];
    }
    return best;
  }

  updateText(direction, threshold, below) {
    const { sweep, data } = this, levels = sweep.levels;
    const counts = [below, ...sweep.counts.map((counts) => counts[below])], value = sweep.euler[below];
    const result = document.createElement("strong");
    result.id = "euler";
    result.textContent = number(value, 6);
    const sum = counts.map((n, i) => (i === 0 ? "" : levels[i - 1].rows % 2 ? " + " : " − ") + number(n)).join("");
    const name = data.weighted ? "weighted Euler characteristic = " : "Euler characteristic = ";
    element("formula").replaceChildren(name, data.weighted || !levels.length ? "" : `${sum} = `, result);
    [1, ...levels.map((level) => level.rows)].forEach((rows, i) => {
      const [, now, all] = element(`count-${rows}`).cells;
      now.textContent = number(counts[i]);
      all.textContent = number(i === 0 ? sweep.size : levels[i - 1].count);
    });
    element("azimuth-value").textContent = `${element("azimuth").value}°`;
    element("elevation-value").textContent = `${number(Number(element("elevation").value))}°`;
    element("height-value").textContent = threshold.toPrecision(3).replace("-", "−");
    element("vector").textContent = `direction (${direction.map((d) => d.toFixed(2).replace("-", "−")).join(", ")})`;
    element("height").setAttribute("aria-valuetext", `height ${threshold.toPrecision(3)}, Euler characteristic ${value}`);
    element("azimuth").setAttribute("aria-valuetext", `${element("azimuth").value} degrees`);
    element("elevation").setAttribute("aria-valuetext", `${element("elevation").value} degrees`);
  }

  listen() {
    for (const id of ["azimuth", "elevation"]) element(id).addEventListener("input", () => this.change("direction"));
    element("height").addEventListener("input", () => this.change("height"));
    element("sweep").addEventListener("click", () => this.play(!this.playing));
    element("transform").addEventListener("pointerdown", (event) => this.select(event));
    new ResizeObserver(() => this.change("view")).observe(element("shape"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.stage.restyle();
      this.nullStage?.restyle();
      this.change("view");
    });
    if (!this.inPlane) this.listenToRotation();
  }

  listenToRotation() {
    const { stage } = this, canvas = element("shape");
    canvas.tabIndex = 0;
    let timer;
    // Large shapes are drawn coarsely while they move.
    const move = () => {
      stage.coarse = stage.slow;
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (stage.coarse) this.change("view");
        stage.coarse = false;
      }, 200);
      this.change("view");
    };
    const rotate = (right, up) => {
      stage.yaw -= right;
      stage.pitch = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, stage.pitch + up));
      move();
    };
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) rotate(event.movementX * 0.008, event.movementY * 0.008);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      stage.zoom = Math.min(20, Math.max(0.2, stage.zoom * Math.exp(-event.deltaY * 0.001)));
      move();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (!step) return;
      event.preventDefault();
      rotate(...step);
    });
    element("reset").addEventListener("click", () => {
      stage.reset();
      this.change("view");
    });
  }

  // Select the direction and height of a pixel of the image.
  select(event) {
    const { box, half } = this.transformLayout, { data } = this, [left, top, right, bottom] = box, rows = this.image.rows;
    const row = Math.floor((event.offsetY - top) / (bottom - top) * rows);
    if (row < 0 || row >= rows || event.offsetX < left || event.offsetX > right) return;
    const threshold = (event.offsetX - left) / (right - left) * 2 * (data.radius + half) - data.radius - half;
    const steps = Number(element("height").max);
    element("height").value = Math.round((threshold / data.radius + 1) / 2 * steps);
    const chosen = Array.from(data.directions.subarray(row * data.dim, (row + 1) * data.dim)), degrees = 180 / Math.PI;
    const d = this.inPlane ? chosen : lying(chosen, data.up);
    element("azimuth").value = (Math.round(Math.atan2(d[1], d[0]) * degrees) + 360) % 360;
    if (!this.inPlane) element("elevation").value = Math.round(Math.asin(Math.max(-1, Math.min(1, d[2]))) * degrees);
    this.change("direction", "height");
  }

  play(on) {
    const button = element("sweep"), slider = element("height"), steps = Number(slider.max);
    this.playing = on;
    cancelAnimationFrame(this.frame); // of a previous sweep
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Stop" : "Sweep the height";
    if (!on) return;
    if (Number(slider.value) === steps) slider.value = 0;
    const begin = performance.now(), from = Number(slider.value);
    const step = (now) => {
      slider.value = from + Math.round((now - begin) / 6000 * steps); // six seconds from end to end
      this.change("height");
      if (Number(slider.value) < steps) this.frame = requestAnimationFrame(step);
      else this.play(false);
    };
    this.frame = requestAnimationFrame(step);
  }
}

window.explorer = new Explorer(load());
