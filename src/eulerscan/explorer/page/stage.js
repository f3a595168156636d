"use strict";

// Coordinates of a vector given with z up, and back, if another axis points up.
function standing([x, y, z], up) {
  return up === "y" ? [y, z, x] : [x, y, z];
}

function lying([x, y, z], up) {
  return up === "y" ? [z, x, y] : [x, y, z];
}

// The shape on its canvas. In space, the mouse and the arrow keys rotate the view.
class Stage {
  // With `values` of the vertices, colors encode these, from the low end of `data.map` to the high one.
  constructor(canvas, data, sweep, values = null) {
    Object.assign(this, { canvas, data, sweep, values, colored: data.weighted || values !== null, raster: new Raster(), buffer: document.createElement("canvas") });
    this.inPlane = data.dim === 2;
    this.outlined = this.inPlane && values !== null && data.drawn.edges.length > 0; // the color of a region is that of its outline
    this.level = Object.fromEntries(sweep.levels.map((level, l) => [level.rows, { ...level, tops: sweep.tops[l] }]));
    const count = (rows) => this.level[rows]?.count ?? 0;
    this.firstEdge = 1 + sweep.size; // ids of the simplices: vertices from 1, then edges, then triangles
    this.firstTriangle = this.firstEdge + count(2);
    this.tops = new Uint32Array(this.firstTriangle + count(3));
    this.paint = new Uint16Array(this.tops.length);
    this.projected = new Float64Array(3 * sweep.size);
    this.measure();
    this.assignTones();
    this.reset();
  }

  reset() {
    [this.yaw, this.pitch, this.zoom] = [-1.05, 0.42, 1];
  }

  restyle() {
    Object.assign(this, colorTables(this.data.weighted, this.values !== null));
  }

  // Center of the bounding box, and the largest distance from it.
  measure() {
    const { dim, size } = this.sweep, all = [this.sweep.points, ...this.data.warps.map((warp) => warp.points)];
    const low = new Array(dim).fill(Infinity), high = new Array(dim).fill(-Infinity);
    for (const points of all) {
      for (let i = 0; i < points.length; i++) {
        low[i % dim] = Math.min(low[i % dim], points[i]);
        high[i % dim] = Math.max(high[i % dim], points[i]);
      }
    }
    this.center = low.map((value, axis) => (value + high[axis]) / 2);
    let largest = 0;
    for (const points of all) {
      for (let v = 0; v < size; v++) {
        let square = 0;
        for (let axis = 0; axis < dim; axis++) square += (points[v * dim + axis] - this.center[axis]) ** 2;
        largest = Math.max(largest, square);
      }
    }
    this.extent = Math.sqrt(largest) || 1;
  }

  // Colors that do not depend on the view: values of the vertices, weights, or edges on a surface.
  assignTones() {
    const { drawn, weighted, map } = this.data, flat = SHADES - 3;
    if (this.values) {
      const fraction = (value) => Math.min(1, Math.max(0, (value - map.low) / (map.high - map.low)));
      const tone = (...vertices) => {
        const mean = vertices.reduce((sum, v) => sum + fraction(this.values[v]), 0) / vertices.length;
        return Math.round(255 * mean) * SHADES + flat;
      };
      const corners = (rows, i) => Array.from({ length: rows }, (_, k) => this.level[rows].vertices[k * this.level[rows].count + i]);
      for (const v of drawn.vertices) this.paint[1 + v] = tone(v);
      for (const e of drawn.edges) this.paint[this.firstEdge + e] = tone(...corners(2, e));
      for (const t of drawn.triangles) this.paint[this.firstTriangle + t] = this.outlined ? flat : tone(...corners(3, t));
      return;
    }
    let low = Infinity, high = -Infinity;
    const all = [this.sweep.weights, this.level[2]?.weights, this.level[3]?.weights];
    for (const weights of all) for (const w of weights ?? []) [low, high] = [Math.min(low, w), Math.max(high, w)];
    this.weights = [low, high];
    const tone = (weights, i) => Math.round(255 * (weights[i] - low) / (high - low || 1)) * SHADES + flat;
    const onSurface = drawn.triangles.length ? SHADES + flat : flat;
    for (const v of drawn.vertices) this.paint[1 + v] = weighted ? tone(all[0], v) : flat;
    for (const e of drawn.edges) this.paint[this.firstEdge + e] = weighted ? tone(all[1], e) : onSurface;
    for (const t of drawn.triangles) this.paint[this.firstTriangle + t] = weighted ? tone(all[2], t) : SHADES - 1;
  }

  // Rows of the view matrix: right, up, toward the viewer.
  view() {
    if (this.inPlane) return [[1, 0], [0, 1], [0, 0]];
    const [s, c, se, ce] = [Math.sin(this.yaw), Math.cos(this.yaw), Math.sin(this.pitch), Math.cos(this.pitch)];
    return [[-s, c, 0], [-se * c, -se * s, ce], [ce * c, ce * s, se]].map((row) => standing(row, this.data.up));
  }

  // Project a point, or with `origin = false` a vector, to [x, y, depth] in pixels.
  project(point, origin = true) {
    const at = origin ? point.map((value, axis) => value - this.center[axis]) : point;
    const [x, y, z] = this.view().map((row) => row.reduce((sum, value, axis) => sum + value * at[axis], 0) * this.pixels);
    return origin ? [x + this.width / 2, this.height / 2 - y, z] : [x, -y, z];
  }

  // Rasterize all simplices in the current view.
  render() {
    const begin = performance.now();
    this.fine = this.coarse ? 1 : Math.max(2, window.devicePixelRatio || 1); // supersampling, for smooth edges
    const hidden = !this.width;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    if (!this.width || !this.height) return; // hidden: an image needs pixels
    if (hidden) this.restyle(); // a hidden frame has no computed colors
    this.pixels = 0.43 * Math.min(this.width, this.height) / this.extent * this.zoom;
    const { raster, sweep, projected, center, fine } = this, { points, dim, size } = sweep;
    raster.resize(Math.round(this.width * fine), Math.round(this.height * fine));
    raster.clear();
    const view = this.view(), scale = this.pixels * fine, left = raster.width / 2, top = raster.height / 2;
    for (let v = 0; v < size; v++) {
      let x = 0, y = 0, z = 0;
      for (let axis = 0; axis < dim; axis++) {
        const value = points[v * dim + axis] - center[axis];
        x += view[0][axis] * value;
        y += view[1][axis] * value;
        z += view[2][axis] * value;
      }
      projected[3 * v] = left + x * scale;
      projected[3 * v + 1] = top - y * scale;
      projected[3 * v + 2] = z * scale;
    }
    this.drawTriangles();
    this.drawLines();
    if (!this.coarse) this.slow = performance.now() - begin > 30;
  }

  drawTriangles() {
    const { raster, projected, paint, firstTriangle, inPlane, colored } = this, { drawn } = this.data;
    const triangles = drawn.triangles;
    if (!triangles.length) return;
    const { vertices, count } = this.level[3];
    for (let i = 0; i < triangles.length; i++) {
      const t = triangles[i], a = 3 * vertices[t], b = 3 * vertices[count + t], c = 3 * vertices[2 * count + t];
      if (!inPlane) {
        // Lit from above the viewer's left shoulder, on both sides, since the order of the corners is arbitrary.
        const ux = projected[b] - projected[a], uy = projected[b + 1] - projected[a + 1], uz = projected[b + 2] - projected[a + 2];
        const vx = projected[c] - projected[a], vy = projected[c + 1] - projected[a + 1], vz = projected[c + 2] - projected[a + 2];
        const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
        const facing = z < 0 ? -1 : 1, length = Math.sqrt(x * x + y * y + z * z) || 1;
        const light = Math.max(0, facing * (-0.35 * x - 0.5 * y + 0.79 * z) / length);
        const id = firstTriangle + t, tone = paint[id] - paint[id] % SHADES;
        paint[id] = tone + Math.round((colored ? 0.5 + 0.5 * light : light) * (SHADES - 1));
      }
      raster.triangle(projected, a, b, c, firstTriangle + t);
    }
  }

  drawLines() {
    const { raster, projected, fine, firstEdge, pixels } = this, { drawn } = this.data;
    const surface = drawn.triangles.length > 0, nearer = this.inPlane ? 0 : 0.004 * this.extent * pixels * fine;
    if (drawn.edges.length) {
      const { vertices, count } = this.level[2];
      for (const e of drawn.edges) {
        raster.line(projected, 3 * vertices[e], 3 * vertices[count + e], firstEdge + e, (surface ? (this.outlined ? 2.5 : 0.6) : 1.5) * fine, nearer);
      }
    }
    const radius = Math.min(4, Math.max(1.3, 60 / Math.sqrt(drawn.vertices.length))) * fine;
    for (const v of drawn.vertices) raster.disc(projected, 3 * v, 1 + v, radius, 1.5 * nearer);
  }

  // Highlight the part at or below the plane.
  highlight(direction, threshold, directionChanged) {
    if (directionChanged) {
      this.tops.set(this.sweep.rank, 1);
      for (const [rows, from] of [[2, this.firstEdge], [3, this.firstTriangle]]) {
        if (this.level[rows]) this.tops.set(this.level[rows].tops, from);
      }
    }
    if (!this.width || !this.height) return;
    this.raster.colorize(this.tops, this.sweep.below(threshold), this.paint, this.lit, this.unlit);
    const { context, width, height } = prepare(this.canvas);
    const foot = this.foot(direction, threshold);
    if (this.inPlane) this.shadeBelow(context, direction, foot);
    else this.blendPlane(direction, foot);
    const { raster, buffer } = this;
    [buffer.width, buffer.height] = [raster.width, raster.height];
    buffer.getContext("2d").putImageData(raster.image, 0, 0);
    context.imageSmoothingQuality = "high";
    context.drawImage(buffer, 0, 0, width, height);
    this.drawPlane(context, direction, foot);
    if (!this.inPlane) this.drawTriad(context);
  }

  // The three axes, in the corner.
  drawTriad(context) {
    const length = 26, [x, y] = [40, this.height - 40];
    context.strokeStyle = context.fillStyle = theme("soft");
    context.lineWidth = 1.25;
    context.textAlign = "center";
    context.textBaseline = "middle";
    [0, 1, 2].forEach((axis) => {
      const [right, up] = this.view().map((row) => row[axis]);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + length * right, y - length * up);
      context.stroke();
      context.fillText("xyz"[axis], x + (length + 9) * right, y - (length + 9) * up);
    });
  }

  // The point of the plane closest to the center of the shape.
  foot(direction, threshold) {
    const height = direction.reduce((sum, d, axis) => sum + d * this.center[axis], 0);
    return this.center.map((value, axis) => value + (threshold - height) * direction[axis]);
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

  // Half sides of the square that represents the plane.
  halfSides(direction) {
    const [x, y, z] = direction, axis = Math.abs(z) > 0.9 ? [1, 0, 0] : [0, 0, 1], cross = (a, b) =>
      [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const one = cross([x, y, z], axis), length = Math.hypot(...one) / (0.95 * this.extent);
    const first = one.map((value) => value / length);
    return [first, cross([x, y, z], first)];
  }

  blendPlane(direction, foot) {
    const scaled = (values) => values.map((value) => value * this.fine);
    const [one, two] = this.halfSides(direction).map((side) => scaled(this.project(side, false)));
    this.raster.blend(scaled(this.project(foot)), one, two, rgb(theme("plane")), 0.22);
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
      const [one, two] = this.halfSides(direction).map((side) => this.project(side, false));
      for (const [u, v] of [[1, 1], [1, -1], [-1, -1], [-1, 1]]) {
        context.lineTo(x + u * one[0] + v * two[0], y + u * one[1] + v * two[1]);
      }
      context.closePath();
    }
    context.globalAlpha = this.inPlane ? 1 : 0.55;
    context.stroke();
    context.globalAlpha = 1;
    // Arrow in the direction, from the plane upward.
    const [dx, dy] = this.project(direction.map((d) => d * 0.22 * this.extent / this.zoom), false), length = Math.hypot(dx, dy);
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
