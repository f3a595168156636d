"use strict";

// The exact transform of one complex in one direction, as in eulerscan.ect: a simplex has the height of its highest vertex and
// counts if that is <= the threshold.
//
// setDirection() sorts the vertices by height and accumulates their coefficients. Afterwards any height is one binary search,
// however large the shape.
class Sweep {
  constructor(points, dim, levels, weights) {
    this.points = points;
    this.dim = dim;
    this.size = points.length / dim;
    this.levels = levels; // [{ rows, count, vertices: Uint32Array [rows * count], weights: Float64Array | null }]
    this.weights = weights;
    this.heights = new Float64Array(this.size);
    this.order = new Uint32Array(this.size);
    this.rank = new Uint32Array(this.size);
    this.sorted = new Float64Array(this.size);
    // Entry m: for the subcomplex of the m lowest vertices.
    this.euler = new Float64Array(this.size + 1);
    this.counts = levels.map(() => new Uint32Array(this.size + 1));
    // Rank of the highest vertex: a simplex is in the subcomplex of the m lowest vertices if this is less than m.
    this.tops = levels.map((level) => new Uint32Array(level.count));
    this.buffer = new Uint32Array(this.size);
  }

  setDirection(direction) {
    const { points, dim, size, heights, order, rank, sorted, euler } = this;
    for (let v = 0; v < size; v++) {
      let height = 0;
      for (let axis = 0; axis < dim; axis++) height += points[v * dim + axis] * direction[axis];
      heights[v] = height;
    }
    this.sort();
    euler[0] = 0;
    for (let i = 0; i < size; i++) {
      const v = order[i];
      rank[v] = i;
      sorted[i] = heights[v];
      euler[i + 1] = this.weights ? this.weights[v] : 1;
    }
    this.levels.forEach((level, l) => this.collapse(level, this.tops[l], this.counts[l].fill(0)));
    for (let i = 0; i < size; i++) euler[i + 1] += euler[i];
    for (const counts of this.counts) for (let i = 0; i < size; i++) counts[i + 1] += counts[i];
  }

  collapse(level, tops, counts) {
    const { rank, euler } = this;
    const { rows, count, vertices, weights } = level;
    const sign = rows % 2 ? 1 : -1;
    for (let i = 0; i < count; i++) {
      let top = rank[vertices[i]];
      for (let row = 1; row < rows; row++) {
        const other = rank[vertices[row * count + i]];
        if (other > top) top = other;
      }
      tops[i] = top;
      counts[top + 1] += 1;
      euler[top + 1] += weights ? sign * weights[i] : sign;
    }
  }

  // Radix sort of the heights as order-preserving 64-bit integers. Stable, so ties are broken by index.
  sort() {
    const { size, heights } = this;
    const bits = new Uint32Array(heights.buffer);
    let from = this.order, to = this.buffer;
    for (let v = 0; v < size; v++) from[v] = v;
    const starts = new Uint32Array(2048);
    for (let shift = 0; shift < 64; shift += 11) {
      const digit = (v) => {
        const high = bits[2 * v + 1], flip = high >>> 31 ? 0xffffffff : 0;
        const low = bits[2 * v] ^ flip, top = high ^ (flip | 0x80000000);
        if (shift >= 33) return (top >>> (shift - 32)) & 2047;
        return shift === 22 ? ((low >>> 22) | ((top & 1) << 10)) & 2047 : (low >>> shift) & 2047;
      };
      starts.fill(0);
      for (let v = 0; v < size; v++) starts[digit(v)]++;
      for (let d = 0, total = 0; d < 2048; d++) {
        const count = starts[d];
        starts[d] = total;
        total += count;
      }
      for (let i = 0; i < size; i++) to[starts[digit(from[i])]++] = from[i];
      [from, to] = [to, from];
    }
    [this.order, this.buffer] = [from, to];
  }

  // Number of vertices at or below a threshold.
  below(threshold) {
    let low = 0, high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.sorted[middle] <= threshold) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Heights and values of the jumps of the curve, and its range.
  jumps() {
    const { sorted, euler, size } = this, heights = [], values = [];
    let last = euler[0], low = last, high = last;
    for (let i = 0; i < size; i++) {
      const value = euler[i + 1];
      // Among vertices at the same height, the last one has the value of the curve.
      if (value === last || (i + 1 < size && sorted[i + 1] === sorted[i])) continue;
      heights.push(sorted[i]);
      values.push(value);
      if (value < low) low = value;
      if (value > high) high = value;
      last = value;
    }
    return { heights, values, low, high };
  }

  curve(direction, thresholds) {
    this.setDirection(direction);
    return Array.from(thresholds, (threshold) => this.euler[this.below(threshold)]);
  }
}
