"use strict";

const KINDS = { float64: Float64Array, float32: Float32Array, uint32: Uint32Array };

function decode({ kind, base64 }) {
  return new KINDS[kind](Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer);
}

function element(id) {
  return document.getElementById(id);
}

function load() {
  const data = JSON.parse(element("data").textContent);
  element("data").remove(); // the text is as large as all the rest
  const arrays = (value) => {
    if (Array.isArray(value)) return value.map(arrays);
    if (value === null || typeof value !== "object") return value;
    if ("base64" in value) return decode(value);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, arrays(inner)]));
  };
  return arrays(data);
}

class Explorer {
  constructor(data) {
    this.data = data;
    this.inPlane = data.dim === 2;
    this.sweep = new Sweep(data.points, data.dim, data.levels, data.weights);
    this.stage = new Stage(element("shape"), data, this.sweep);
    this.image = transformImage(data.transform, data.directions.length / data.dim, data.thresholds.length);
    this.changed = { direction: true, height: true, view: true };
    this.describe();
    this.listen();
    this.draw();
  }

  // The direction that the sliders show. Cosines come from a table, in which axes and diagonals are exact.
  get direction() {
    const cos = (degrees) => this.data.circle[2 * ((degrees % 360 + 360) % 360)], sin = (degrees) => cos(degrees - 90);
    const around = Number(element("azimuth").value), up = Number(element("elevation").value);
    return this.inPlane ? [cos(around), sin(around)] : [cos(up) * cos(around), cos(up) * sin(around), sin(up)];
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
    const colours = data.weighted ? `colour: weight, ${this.stage.weights.map((w) => number(w)).join(" (dark) to ")} (bright)` : "";
    const turning = this.inPlane ? "" : "drag or use the arrow keys to turn it, scroll to zoom";
    element("shape-hint").textContent = [turning, colours].filter(Boolean).join("; ");
    element("transform-hint").textContent = "click to go there";
    element("shape").classList.toggle("turns", !this.inPlane);
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

  change(...what) {
    if (!Object.values(this.changed).some(Boolean)) requestAnimationFrame(() => this.draw());
    for (const name of what) this.changed[name] = true;
  }

  draw() {
    const { direction, threshold, changed, data, sweep } = this;
    this.changed = { direction: false, height: false, view: false };
    if (changed.direction) {
      sweep.turn(direction);
      this.jumps = sweep.jumps();
      this.row = this.nearest(direction);
    }
    const below = sweep.below(threshold);
    if (changed.view) this.stage.look();
    this.stage.light(direction, threshold, changed.direction);
    this.curve = drawCurve(element("curve"), this.jumps, data.radius, data.weighted);
    markCurve(element("curve"), this.curve, threshold, sweep.euler[below]);
    this.placed = drawTransform(element("transform"), this.image, {
      radius: data.radius, threshold, row: this.row, inPlane: this.inPlane, weighted: data.weighted,
    });
    this.say(direction, threshold, below);
  }

  // The row of the image whose direction is closest to this one.
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

  say(direction, threshold, below) {
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
    element("transform").addEventListener("pointerdown", (event) => this.choose(event));
    new ResizeObserver(() => this.change("view")).observe(element("shape"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.stage.restyle();
      this.change("view");
    });
    if (!this.inPlane) this.listenToTurning();
  }

  listenToTurning() {
    const { stage } = this, canvas = element("shape");
    canvas.tabIndex = 0;
    let still;
    // What takes long to draw is drawn coarsely while it moves.
    const move = () => {
      stage.coarse = stage.slow;
      clearTimeout(still);
      still = setTimeout(() => {
        if (stage.coarse) this.change("view");
        stage.coarse = false;
      }, 200);
      this.change("view");
    };
    const turn = (right, up) => {
      stage.around -= right;
      stage.above = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, stage.above + up));
      move();
    };
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) turn(event.movementX * 0.008, event.movementY * 0.008);
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
      turn(...step);
    });
    element("reset").addEventListener("click", () => {
      stage.reset();
      this.change("view");
    });
  }

  // Go to the direction and height of a place on the image.
  choose(event) {
    const { box, half } = this.placed, { data } = this, [left, top, right, bottom] = box, rows = this.image.rows;
    const row = Math.floor((event.offsetY - top) / (bottom - top) * rows);
    if (row < 0 || row >= rows || event.offsetX < left || event.offsetX > right) return;
    const threshold = (event.offsetX - left) / (right - left) * 2 * (data.radius + half) - data.radius - half;
    const steps = Number(element("height").max);
    element("height").value = Math.round((threshold / data.radius + 1) / 2 * steps);
    const d = Array.from(data.directions.subarray(row * data.dim, (row + 1) * data.dim)), degrees = 180 / Math.PI;
    element("azimuth").value = (Math.round(Math.atan2(d[1], d[0]) * degrees) + 360) % 360;
    if (!this.inPlane) element("elevation").value = Math.round(Math.asin(Math.max(-1, Math.min(1, d[2]))) * degrees);
    this.change("direction", "height");
  }

  play(on) {
    const button = element("sweep"), slider = element("height"), steps = Number(slider.max);
    this.playing = on;
    cancelAnimationFrame(this.frame); // of a sweep that was stopped a moment ago
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
