"use strict";

// The visible simplex at each pixel: rendered once per view, as ids instead of colors. Highlighting another part is then one
// pass over the pixels, whatever the number of simplices, and needs no GPU.
class Raster {
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.ids = new Int32Array(width * height); // 0 for the background
    this.depth = new Float32Array(width * height);
    this.image = new ImageData(width, height);
    this.colors = new Uint32Array(this.image.data.buffer);
  }

  clear() {
    this.ids.fill(0);
    this.depth.fill(-Infinity);
  }

  // Corners a, b, c are offsets of [x, y, depth] in `at`. The simplex nearest to the viewer is kept.
  triangle(at, a, b, c, id) {
    const ax = at[a], ay = at[a + 1], bx = at[b], by = at[b + 1], cx = at[c], cy = at[c + 1];
    const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    if (area === 0) return;
    const width = this.width, depth = this.depth, ids = this.ids;
    const left = Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5)), right = Math.min(width, Math.max(ax, bx, cx) + 0.5) - 1;
    const top = Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5)), bottom = Math.min(this.height, Math.max(ay, by, cy) + 0.5) - 1;
    if (left > right || top > bottom) return; // covers no pixel center
    const az = at[a + 2], toB = (at[b + 2] - az) / area, toC = (at[c + 2] - az) / area, s = area < 0 ? -1 : 1;
    for (let y = top; y <= bottom; y++) {
      const py = y + 0.5 - ay;
      let px = left + 0.5 - ax;
      for (let x = left, p = y * width + left; x <= right; x++, p++, px++) {
        const u = px * (cy - ay) - py * (cx - ax); // barycentric coordinate of b, times area
        const v = py * (bx - ax) - px * (by - ay);
        if (s * u < 0 || s * v < 0 || s * (area - u - v) < 0) continue;
        const z = az + u * toB + v * toC;
        if (z >= depth[p]) {
          depth[p] = z;
          ids[p] = id;
        }
      }
    }
  }

  line(at, a, b, id, width, nearer) {
    const dx = at[b] - at[a], dy = at[b + 1] - at[a + 1], dz = at[b + 2] - at[a + 2];
    const steps = Math.max(1, Math.ceil(Math.max(Math.abs(dx), Math.abs(dy))));
    const steep = Math.abs(dy) > Math.abs(dx);
    // Measured along an axis, so that the line has this width at any angle.
    const across = width * Math.hypot(dx, dy) / Math.max(Math.abs(dx), Math.abs(dy), 1e-9);
    for (let i = 0; i <= steps; i++) {
      const x = at[a] + dx * i / steps, y = at[a + 1] + dy * i / steps, z = at[a + 2] + dz * i / steps + nearer;
      const first = Math.round((steep ? x : y) - across / 2);
      for (let k = 0; k < across; k++) {
        if (steep) this.pixel(first + k, Math.floor(y), z, id);
        else this.pixel(Math.floor(x), first + k, z, id);
      }
    }
  }

  disc(at, a, id, radius, nearer) {
    const x = at[a], y = at[a + 1], z = at[a + 2] + nearer;
    for (let j = Math.floor(y - radius); j <= y + radius; j++) {
      for (let i = Math.floor(x - radius); i <= x + radius; i++) {
        if ((i + 0.5 - x) ** 2 + (j + 0.5 - y) ** 2 <= radius * radius) this.pixel(i, j, z, id);
      }
    }
  }

  pixel(x, y, z, id) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const p = y * this.width + x;
    if (z >= this.depth[p]) {
      this.depth[p] = z;
      this.ids[p] = id;
    }
  }

  // `paint[id]` is an index into one of two color tables: `lit` if the top of the simplex is among the first `below` vertices.
  colorize(tops, below, paint, lit, unlit) {
    const { ids, colors } = this;
    for (let p = 0; p < ids.length; p++) {
      const id = ids[p];
      colors[p] = id === 0 ? 0 : (tops[id] < below ? lit : unlit)[paint[id]];
    }
  }

  // Blend a translucent parallelogram, given by [x, y, depth] of its center and two half sides, over what lies behind it.
  blend(center, one, two, tint, alpha) {
    const { width, height, depth, colors } = this;
    const area = one[0] * two[1] - one[1] * two[0];
    if (Math.abs(area) < 1e-3 * (Math.hypot(...one) * Math.hypot(...two))) return; // viewed edge-on
    const [r, g, b] = tint;
    const extentX = Math.abs(one[0]) + Math.abs(two[0]), extentY = Math.abs(one[1]) + Math.abs(two[1]);
    const left = Math.max(0, Math.floor(center[0] - extentX)), right = Math.min(width - 1, Math.ceil(center[0] + extentX));
    const top = Math.max(0, Math.floor(center[1] - extentY)), bottom = Math.min(height - 1, Math.ceil(center[1] + extentY));
    for (let y = top; y <= bottom; y++) {
      for (let x = left, p = y * width + left; x <= right; x++, p++) {
        const px = x + 0.5 - center[0], py = y + 0.5 - center[1];
        const u = (px * two[1] - py * two[0]) / area, v = (py * one[0] - px * one[1]) / area;
        if (u < -1 || u > 1 || v < -1 || v > 1 || center[2] + u * one[2] + v * two[2] < depth[p]) continue;
        const c = colors[p], opacity = (c >>> 24) / 255, total = alpha + opacity * (1 - alpha);
        const mix = (over, under) => Math.round((over * alpha + under * opacity * (1 - alpha)) / total);
        colors[p] =
          (Math.round(total * 255) << 24) | (mix(b, (c >>> 16) & 255) << 16) | (mix(g, (c >>> 8) & 255) << 8) | mix(r, c & 255);
      }
    }
  }
}
