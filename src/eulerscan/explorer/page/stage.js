"use strict";

// The shape on its canvas: in the plane as it is, in space from a side that the mouse and the arrow keys choose.
class Stage {
  constructor(canvas, data, sweep) {
    Object.assign(this, { canvas, data, sweep, raster: new Raster(), buffer: document.createElement("canvas") });
    this.inPlane = data.dim === 2;
    this.level = Object.fromEntries(sweep.levels.map((level, l) => [level.rows, { ...level, tops: sweep.tops[l] }]));
    const count = (rows) => this.level[rows]?.count ?? 0;
    this.edgesFrom = 1 + sweep.size; // numbers of the simplices that can be seen: vertices from 1, then edges, then triangles
    this.trianglesFrom = this.edgesFrom + count(2);
    this.tops = new Uint32Array(this.trianglesFrom + count(3));
    this.paint = new Uint16Array(this.tops.length);
    this.placed = new Float64Array(3 * sweep.size);
    this.measure();
    this.tone();
    this.reset();
  }

  reset() {
    [this.around, this.above, this.zoom] = [-1.05, 0.42, 1];
  }

  restyle() {
    Object.assign(this, tables(this.data.weighted));
  }

  // The middle of the shape and how far it reaches from there.
  measure() {
    const { points, dim, size } = this.sweep;
    const low = new Array(dim).fill(Infinity), high = new Array(dim).fill(-Infinity);
    for (let i = 0; i < points.length; i++) {
      low[i % dim] = Math.min(low[i % dim], points[i]);
      high[i % dim] = Math.max(high[i % dim], points[i]);
    }
    this.middle = low.map((value, axis) => (value + high[axis]) / 2);
    let reach = 0;
    for (let v = 0; v < size; v++) {
      let square = 0;
      for (let axis = 0; axis < dim; axis++) square += (points[v * dim + axis] - this.middle[axis]) ** 2;
      reach = Math.max(reach, square);
    }
    this.reach = Math.sqrt(reach) || 1;
  }

  // Colours that do not depend on the view: weights, or lines on a surface.
  tone() {
    const { drawn, weighted } = this.data, flat = SHADES - 3;
    let low = Infinity, high = -Infinity;
    const all = [this.sweep.weights, this.level[2]?.weights, this.level[3]?.weights];
    for (const weights of all) for (const w of weights ?? []) [low, high] = [Math.min(low, w), Math.max(high, w)];
    this.weights = [low, high];
    const tone = (weights, i) => Math.round(255 * (weights[i] - low) / (high - low || 1)) * SHADES + flat;
    const onSurface = drawn.triangles.length ? SHADES + flat : flat;
    for (const v of drawn.vertices) this.paint[1 + v] = weighted ? tone(all[0], v) : flat;
    for (const e of drawn.edges) this.paint[this.edgesFrom + e] = weighted ? tone(all[1], e) : onSurface;
    for (const t of drawn.triangles) this.paint[this.trianglesFrom + t] = weighted ? tone(all[2], t) : SHADES - 1;
  }

  // Rows of the view: to the right, up, towards the viewer.
  view() {
    if (this.inPlane) return [[1, 0], [0, 1], [0, 0]];
    const [s, c, se, ce] = [Math.sin(this.around), Math.cos(this.around), Math.sin(this.above), Math.cos(this.above)];
    return [[-s, c, 0], [-se * c, -se * s, ce], [ce * c, ce * s, se]];
  }

  // A point, or with `origin = false` an arrow, as [x, y, depth] in pixels.
  project(point, origin = true) {
    const at = origin ? point.map((value, axis) => value - this.middle[axis]) : point;
    const [x, y, z] = this.view().map((row) => row.reduce((sum, value, axis) => sum + value * at[axis], 0) * this.pixels);
    return origin ? [x + this.width / 2, this.height / 2 - y, z] : [x, -y, z];
  }

  // Draw all simplices from where the viewer is.
  look() {
    const begin = performance.now();
    this.fine = this.coarse ? 1 : Math.max(2, window.devicePixelRatio || 1); // drawn finer than seen, it looks smooth
    const hidden = !this.width;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    if (!this.width || !this.height) return; // there are no images without pixels
    if (hidden) this.restyle(); // a hidden frame has no colours
    this.pixels = 0.43 * Math.min(this.width, this.height) / this.reach * this.zoom;
    const { raster, sweep, placed, middle, fine } = this, { points, dim, size } = sweep;
    raster.resize(Math.round(this.width * fine), Math.round(this.height * fine));
    raster.clear();
    const view = this.view(), scale = this.pixels * fine, left = raster.width / 2, top = raster.height / 2;
    for (let v = 0; v < size; v++) {
      let x = 0, y = 0, z = 0;
      for (let axis = 0; axis < dim; axis++) {
        const value = points[v * dim + axis] - middle[axis];
        x += view[0][axis] * value;
        y += view[1][axis] * value;
        z += view[2][axis] * value;
      }
      placed[3 * v] = left + x * scale;
      placed[3 * v + 1] = top - y * scale;
      placed[3 * v + 2] = z * scale;
    }
    this.drawTriangles();
    this.drawLines();
    if (!this.coarse) this.slow = performance.now() - begin > 30;
  }

  drawTriangles() {
    const { raster, placed, paint, trianglesFrom, inPlane } = this, { weighted, drawn } = this.data;
    const triangles = drawn.triangles;
    if (!triangles.length) return;
    const { vertices, count } = this.level[3];
    for (let i = 0; i < triangles.length; i++) {
      const t = triangles[i], a = 3 * vertices[t], b = 3 * vertices[count + t], c = 3 * vertices[2 * count + t];
      if (!inPlane) {
        // Lit from above the viewer's left shoulder, from both sides: the order of the corners says nothing.
        const ux = placed[b] - placed[a], uy = placed[b + 1] - placed[a + 1], uz = placed[b + 2] - placed[a + 2];
        const vx = placed[c] - placed[a], vy = placed[c + 1] - placed[a + 1], vz = placed[c + 2] - placed[a + 2];
        const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
        const towards = z < 0 ? -1 : 1, length = Math.sqrt(x * x + y * y + z * z) || 1;
        const light = Math.max(0, towards * (-0.35 * x - 0.5 * y + 0.79 * z) / length);
        const id = trianglesFrom + t, tone = paint[id] - paint[id] % SHADES;
        paint[id] = tone + Math.round((weighted ? 0.5 + 0.5 * light : light) * (SHADES - 1));
      }
      raster.triangle(placed, a, b, c, trianglesFrom + t);
    }
  }

  drawLines() {
    const { raster, placed, fine, edgesFrom, pixels } = this, { drawn } = this.data;
    const surface = drawn.triangles.length > 0, nearer = this.inPlane ? 0 : 0.004 * this.reach * pixels * fine;
    if (drawn.edges.length) {
      const { vertices, count } = this.level[2];
      for (const e of drawn.edges) {
        raster.line(placed, 3 * vertices[e], 3 * vertices[count + e], edgesFrom + e, (surface ? 0.6 : 1.5) * fine, nearer);
      }
    }
    const radius = Math.min(4, Math.max(1.3, 60 / Math.sqrt(drawn.vertices.length))) * fine;
    for (const v of drawn.vertices) raster.disc(placed, 3 * v, 1 + v, radius, 1.5 * nearer);
  }

  // Light up what is at or below the plane; the direction has turned, or only the height has changed.
  light(direction, threshold, turned) {
    if (turned) {
      this.tops.set(this.sweep.rank, 1);
      for (const [rows, from] of [[2, this.edgesFrom], [3, this.trianglesFrom]]) {
        if (this.level[rows]) this.tops.set(this.level[rows].tops, from);
      }
    }
    if (!this.width || !this.height) return;
    this.raster.colour(this.tops, this.sweep.below(threshold), this.paint, this.lit, this.unlit);
    const { context, width, height } = fitted(this.canvas);
    const foot = this.foot(direction, threshold);
    if (this.inPlane) this.shadeBelow(context, direction, foot);
    else this.cut(direction, foot);
    const { raster, buffer } = this;
    [buffer.width, buffer.height] = [raster.width, raster.height];
    buffer.getContext("2d").putImageData(raster.image, 0, 0);
    context.imageSmoothingQuality = "high";
    context.drawImage(buffer, 0, 0, width, height);
    this.drawPlane(context, direction, foot);
  }

  // The point of the plane closest to the middle of the shape.
  foot(direction, threshold) {
    const height = direction.reduce((sum, d, axis) => sum + d * this.middle[axis], 0);
    return this.middle.map((value, axis) => value + (threshold - height) * direction[axis]);
  }

  shadeBelow(context, direction, foot) {
    const far = 4 * (this.width + this.height), [x, y] = this.project(foot), [dx, dy] = [direction[0], -direction[1]];
    context.fillStyle = `${theme("plane")}14`;
    context.beginPath();
    context.moveTo(x - dy * far, y + dx * far);
    context.lineTo(x + dy * far, y - dx * far);
    context.lineTo(x + (dy - dx) * far, y - (dx + dy) * far);
    context.lineTo(x - (dx + dy) * far, y + (dx - dy) * far);
    context.fill();
  }

  // Two arrows in the plane, each to the middle of a side of the sheet that is drawn of it.
  sides(direction) {
    const [x, y, z] = direction, axis = Math.abs(z) > 0.9 ? [1, 0, 0] : [0, 0, 1], cross = (a, b) =>
      [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const one = cross([x, y, z], axis), length = Math.hypot(...one) / (0.95 * this.reach);
    const first = one.map((value) => value / length);
    return [first, cross([x, y, z], first)];
  }

  cut(direction, foot) {
    const finer = (values) => values.map((value) => value * this.fine);
    const [one, two] = this.sides(direction).map((side) => finer(this.project(side, false)));
    this.raster.glass(finer(this.project(foot)), one, two, rgb(theme("plane")), 0.22);
  }

  drawPlane(context, direction, foot) {
    const [x, y] = this.project(foot);
    context.strokeStyle = context.fillStyle = theme("plane");
    context.lineWidth = 1.5;
    context.beginPath();
    if (this.inPlane) {
      const far = this.width + this.height;
      context.moveTo(x - direction[1] * -far, y + direction[0] * far);
      context.lineTo(x + direction[1] * -far, y - direction[0] * far);
    } else {
      const [one, two] = this.sides(direction).map((side) => this.project(side, false));
      for (const [u, v] of [[1, 1], [1, -1], [-1, -1], [-1, 1]]) {
        context.lineTo(x + u * one[0] + v * two[0], y + u * one[1] + v * two[1]);
      }
      context.closePath();
    }
    context.globalAlpha = this.inPlane ? 1 : 0.55;
    context.stroke();
    context.globalAlpha = 1;
    // The arrow of the direction, from the plane upwards.
    const [dx, dy] = this.project(direction.map((d) => d * 0.22 * this.reach / this.zoom), false), length = Math.hypot(dx, dy);
    if (length < 3) return; // it points at the viewer
    const [ex, ey] = [dx / length, dy / length];
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + dx, y + dy);
    context.stroke();
    context.beginPath();
    context.moveTo(x + dx + 8 * ex, y + dy + 8 * ey);
    context.lineTo(x + dx - 4 * ey, y + dy + 4 * ex);
    context.lineTo(x + dx + 4 * ey, y + dy - 4 * ex);
    context.fill();
  }
}
