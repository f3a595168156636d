"use strict";

// Resize a canvas to the device pixels. Returns its context and size in CSS pixels.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  return { context, width, height };
}

function ticks(low, high, most, integers) {
  const rough = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
  if (integers) step = Math.max(1, Math.round(step));
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) values.push(k * step + 0); // no −0
  return values;
}

function number(value, digits = 3) {
  const text = Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

// Frame, ticks and labels of the axes; `box` is [left, top, right, bottom], and x, y map values to pixels.
function drawAxes(context, box, x, y, { xs, ys, xLabel, yLabel, yText = number }) {
  const [left, top, right, bottom] = box;
  context.strokeStyle = theme("line");
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, right - left, bottom - top);
  context.fillStyle = theme("soft");
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const value of xs) context.fillText(number(value), x(value), bottom + 5);
  context.fillText(xLabel, (left + right) / 2, bottom + 20);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of ys) context.fillText(yText(value), left - 6, y(value));
  context.save();
  context.translate(7, (top + bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  yLabel.split("\n").forEach((line, i) => context.fillText(line, 0, 12 * i));
  context.restore();
}

function drawCurve(canvas, { heights, values, low, high }, radius, weighted) {
  const { context, width, height } = prepare(canvas);
  const box = [58, 6, width - 10, height - 38];
  const margin = 0.06 * (high - low || 1);
  const x = (t) => box[0] + (t + radius) / (2 * radius) * (box[2] - box[0]);
  const y = (value) => box[3] - (value - low + margin) / (high - low + 2 * margin) * (box[3] - box[1]);
  drawAxes(context, box, x, y, {
    xs: ticks(-radius, radius, 6), ys: ticks(low, high, 5, !weighted), xLabel: "height", yLabel: weighted ? "weighted Euler char." : "Euler characteristic",
  });
  context.save();
  context.beginPath();
  context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  context.clip();
  context.beginPath();
  context.moveTo(x(Math.min(-radius, heights[0] ?? 0)), y(0));
  heights.forEach((height, i) => {
    context.lineTo(x(height), y(i ? values[i - 1] : 0));
    context.lineTo(x(height), y(values[i]));
  });
  context.lineTo(x(Math.max(radius, heights.at(-1) ?? 0)), y(values.at(-1) ?? 0));
  context.strokeStyle = theme("curve");
  context.lineWidth = 1.5;
  context.stroke();
  context.restore();
  return { x, y, box };
}

function markCurve(canvas, { x, y, box }, threshold, value) {
  const context = canvas.getContext("2d");
  context.strokeStyle = context.fillStyle = theme("accent");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x(threshold), box[1]);
  context.lineTo(x(threshold), box[3]);
  context.stroke();
  context.beginPath();
  context.arc(x(threshold), y(value), 4.5, 0, 2 * Math.PI);
  context.fill();
}

// The image of the transform and its color scale. Computed once, since it does not depend on the sliders.
// Few values may be beyond the limits.
function transformImage(values, rows, columns, limits) {
  const image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const signed = limits[0] < 0, limit = Math.max(-limits[0], limits[1]) || 1, from = signed ? -limit : 0;
  const stops = signed ? RED_BLUE : VIRIDIS, clipped = low < from || high > limit;
  for (let i = 0; i < pixels.length; i++) pixels[i] = packed(interpolate(stops, (values[i] - from) / (limit - from)));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  canvas.getContext("2d").putImageData(image, 0, 0);
  return { canvas, rows, columns, from, limit, stops, low, high, clipped };
}

function drawTransform(canvas, image, { radius, threshold, row, rows, weighted }) {
  const { context, width, height } = prepare(canvas);
  const box = [58, 6, width - 66, height - 38], [left, top, right, bottom] = box;
  // Pixels are centered at their threshold and direction.
  const half = radius / (image.columns - 1 || 1);
  const x = (t) => left + (t + radius + half) / (2 * (radius + half)) * (right - left);
  const y = (i) => top + (i + 0.5) / image.rows * (bottom - top);
  context.imageSmoothingEnabled = false;
  context.drawImage(image.canvas, left, top, right - left, bottom - top);
  drawAxes(context, box, x, y, {
    xs: ticks(-radius, radius, 6), ys: rows.ticks, xLabel: "height", yLabel: rows.label,
    yText: (row) => rows.labels[rows.ticks.indexOf(row)],
  });
  context.fillStyle = "#ffffff";
  for (const bound of rows.bounds) context.fillRect(left, y(bound) - 0.5, right - left, 1);
  for (let i = 0; i < bottom - top; i++) {
    context.fillStyle = `rgb(${interpolate(image.stops, 1 - i / (bottom - top)).map(Math.round)})`;
    context.fillRect(right + 12, top + i, 10, 1.5);
  }
  // Pointed ends have values beyond the colors.
  for (const [end, tip, color, beyond] of [[top, -6, 1, image.high > image.limit], [bottom, 6, 0, image.low < image.from]]) {
    context.fillStyle = `rgb(${interpolate(image.stops, color).map(Math.round)})`;
    context.beginPath();
    context.moveTo(right + 12, end);
    context.lineTo(right + 17, end + (beyond ? tip : 0));
    context.lineTo(right + 22, end);
    context.fill();
  }
  context.fillStyle = theme("soft");
  context.textAlign = "left";
  const value = (v) => bottom - (v - image.from) / (image.limit - image.from) * (bottom - top);
  for (const v of ticks(image.from, image.limit, 4, !weighted)) context.fillText(number(v), right + 27, value(v));
  for (const [color, width] of [["#000000aa", 3], ["#ffffff", 1.25]]) {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(left, y(row));
    context.lineTo(right, y(row));
    context.moveTo(x(threshold), top);
    context.lineTo(x(threshold), bottom);
    context.stroke();
  }
  context.fillStyle = theme("accent");
  context.beginPath();
  context.arc(x(threshold), y(row), 4.5, 0, 2 * Math.PI);
  context.fill();
  return { x, y, box, half };
}
