// The charts: each a function from data to nodes.

// Labels that would lie on each other are moved apart, from top to bottom.
function spread(places, gap) {
  const order = places.map((y, i) => [y, i]).sort((a, b) => a[0] - b[0]);
  for (let i = 1; i < order.length; i++) order[i][0] = Math.max(order[i][0], order[i - 1][0] + gap);
  const moved = [];
  order.forEach(([y, i]) => { moved[i] = y; });
  return moved;
}

const ticksBetween = (low, high, step) => {
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9; i++) ticks.push(i * step);
  return ticks;
};

function heroFacet({ points, chance }, title, looks, main) {
  const values = (name) => points.flatMap((p) => [...p[name], name === 'contrast' ? p.control : null]).filter((v) => v !== null);
  const range = (name, must) => {
    const all = [...values(name), ...must];
    const low = Math.max(0, Math.floor((Math.min(...all) - 0.03) * 10) / 10);
    return [low, Math.min(1, Math.ceil((Math.max(...all) + 0.02) * 10) / 10)];
  };
  const draw = (width) => {
    const height = Math.round(Math.min(430, Math.max(260, width * 0.68)));
    const left = 46, right = 14, top = 12, bottom = 42;
    const [x0, x1] = range('full', [0.5, 0.9]), [y0, y1] = range('contrast', [0.45, 0.9]);
    const x = scale(x0, x1, left, width - right), y = scale(y0, y1, height - bottom, top);
    const nodes = [];
    for (const tick of ticksBetween(x0, x1, 0.1)) nodes.push(line(x(tick), top, x(tick), height - bottom, 'gridline'), text(x(tick), height - bottom + 16, tick.toFixed(1), { 'text-anchor': 'middle' }));
    for (const tick of ticksBetween(y0, y1, 0.1)) nodes.push(line(left, y(tick), width - right, y(tick), 'gridline'), text(left - 8, y(tick) + 4, tick.toFixed(1), { 'text-anchor': 'end' }));
    nodes.push(line(left, y(0.5), width - right, y(0.5), 'chance'), text(width - right, y(0.5) + 14, chance, { 'text-anchor': 'end' }));
    nodes.push(text((left + width - right) / 2, height - 6, 'AUC on all questions', { 'text-anchor': 'middle', class: 'strong' }));
    nodes.push(s('text', { transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle', class: 'strong' }, 'change AUC'));
    const shown = points.slice().sort((a, b) => main.has(a.estimator) - main.has(b.estimator));
    for (const p of shown) {
      const look = looks[p.estimator];
      const [fx, fy] = [x(p.full[0]), y(p.contrast[0])];
      const about = `${p.label}\nChange AUC ${withInterval(p.contrast)}${p.control === null ? '' : `\nsame weights, asked again: ${short(p.control)}`}\nAll questions ${withInterval(p.full)}`;
      nodes.push(s('g', { class: `${look.class}${main.has(p.estimator) ? '' : ' faded'}`, 'data-tip': about, 'data-estimator': p.estimator },
        p.contrast[1] !== null && line(fx, y(p.contrast[1]), fx, y(p.contrast[2]), 'whisker'),
        p.control !== null && [line(fx, fy, fx, y(p.control), 'gridline'), s('circle', { cx: fx, cy: y(p.control), r: 4, class: 'control' })],
        p.full[1] !== null && line(x(p.full[1]), fy, x(p.full[2]), fy, 'whisker'),
        glyph(look, fx, fy, main.has(p.estimator) ? 17 : 13), s('circle', { cx: fx, cy: fy, r: 13, class: 'hit' })));
    }
    // The best-known estimators are named where they stand, when there is room.
    const named = shown.filter((p) => main.has(p.estimator));
    if (width > 420) {
      const middle = (left + width - right) / 2;
      const places = named.map((p) => y(p.contrast[0]) - 9);
      const sides = named.map((p) => x(p.full[0]) > middle);
      for (const side of [true, false]) {
        const some = named.map((_, i) => i).filter((i) => sides[i] === side);
        const moved = spread(some.map((i) => places[i]), 14);
        some.forEach((i, k) => nodes.push(s('g', { class: looks[named[i].estimator].class }, text(x(named[i].full[0]) + (side ? -12 : 12), moved[k], named[i].label, { class: 'label', 'text-anchor': side ? 'end' : 'start' }))));
      }
    }
    return canvas(width, height, nodes);
  };
  const rows = points.map((p) => [p.label, withInterval(p.full), withInterval(p.contrast), short(p.control)]);
  return h('div', {}, title && h('h3', {}, title),
    points.length ? chart(draw, `${title || 'AUC'}: change AUC against AUC on all questions`) : h('p', { class: 'note' }, 'No contrast set is large enough, so nothing can be drawn.'),
    numbers(`AUC, ${title || ''}`, ['Estimator', 'All questions', 'Change AUC', 'Same weights, asked again'], rows));
}

// Many estimators: a row for each, the one that follows knowledge best on top.
const MEASURES = [['follows', 'Δ₀ᵇ', 0], ['contrast', 'Change AUC', 0.5], ['full', 'Full-set AUC', 0.5]];
const withInterval = (of) => (of[1] === null ? short(of[0]) : `${short(of[0])} [${short(of[1])}, ${short(of[2])}]`);

function heroRows({ points }, title, looks) {
  const ranked = points.slice().sort((a, b) => (b.follows[0] ?? -2) - (a.follows[0] ?? -2));
  const draw = (width) => {
    const tall = 21, top = 22, height = top + tall * ranked.length + 22, gap = 22;
    const left = Math.min(0.58 * width, 14 + 7 * Math.max(...ranked.map((p) => p.label.length)));
    const measures = width - left < 330 ? MEASURES.slice(0, 1) : MEASURES;
    const wide = (width - left - gap * (measures.length - 1)) / measures.length;
    const nodes = ranked.map((p, i) => s('g', { class: looks[p.estimator].class }, text(left - 12, top + tall * (i + 0.5) + 4, p.label, { class: 'label', 'text-anchor': 'end' })));
    measures.forEach(([name, head, reference], m) => {
      const start = left + m * (wide + gap), ends = ranked.flatMap((p) => p[name]).filter((v) => v !== null);
      const low = Math.floor(10 * Math.min(reference, ...ends)) / 10, high = Math.ceil(10 * Math.max(reference, ...ends)) / 10;
      const x = scale(low, high, start + 6, start + wide - 6), step = (high - low) / 0.2 > wide / 34 ? 0.5 : 0.2;
      nodes.push(text(start + wide / 2, 12, head, { 'text-anchor': 'middle', class: 'strong' }));
      for (const tick of ticksBetween(low, high, step)) nodes.push(line(x(tick), top, x(tick), height - 20, 'gridline'), text(x(tick), height - 6, tick.toFixed(1).replace('-', '−').replace('−0.0', '0.0'), { 'text-anchor': 'middle' }));
      nodes.push(line(x(reference), top, x(reference), height - 20, 'chance'));
      ranked.forEach((p, i) => {
        const y = top + tall * (i + 0.5), look = looks[p.estimator];
        nodes.push(s('g', { class: look.class, 'data-tip': `${p.label}\n${head}: ${withInterval(p[name])}` },
          p[name][1] !== null && line(x(p[name][1]), y, x(p[name][2]), y, 'whisker'), p[name][0] !== null && glyph(look, x(p[name][0]), y, 12),
          s('rect', { x: start, y: y - tall / 2, width: wide, height: tall, class: 'hit' })));
      });
    });
    return canvas(width, height, nodes);
  };
  return h('div', {}, title && h('h3', {}, title), chart(draw, `${title || 'Estimators'}: Δ₀ᵇ and AUC, the highest Δ₀ᵇ first`),
    numbers(title || 'Estimators', ['Estimator', ...MEASURES.map(([, head]) => head)], ranked.map((p) => [p.label, ...MEASURES.map(([name]) => withInterval(p[name]))])));
}

// Accuracy of one model: a line per dataset.
function accuracyChart(checkpoints, datasets) {
  const byTokens = checkpoints.every((c) => c.tokens !== null && c.tokens !== undefined);
  const unit = byTokens ? [[1e12, 'trillion '], [1e9, 'billion '], [1e6, 'million '], [1e3, 'thousand '], [1, '']].find(([u]) => Math.max(...checkpoints.map((c) => c.tokens)) >= u) : null;
  const draw = (width) => {
    const height = 280, left = 44, right = 24, top = 12, bottom = 46;
    const places = checkpoints.map((c, i) => (byTokens ? c.tokens : i));
    const x = scale(byTokens ? 0 : Math.min(...places), Math.max(...places, 1e-9), left, width - right);
    const most = Math.min(1, Math.ceil(Math.max(0.1, ...datasets.flatMap((d) => d.accuracy.filter((a) => a !== null))) * 10) / 10);
    const y = scale(0, most, height - bottom, top);
    const nodes = [];
    for (const tick of ticksBetween(0, most, most > 0.5 ? 0.2 : 0.1)) nodes.push(line(left, y(tick), width - right, y(tick), 'gridline'), text(left - 8, y(tick) + 4, percent(tick), { 'text-anchor': 'end' }));
    let last = -99;
    checkpoints.forEach((c, i) => {
      if (x(places[i]) - last < 34) return;
      last = x(places[i]);
      nodes.push(text(x(places[i]), height - bottom + 17, c.label.length > 9 ? `${c.label.slice(0, 8)}…` : c.label, { 'text-anchor': 'middle' }));
    });
    nodes.push(line(left, y(0), width - right, y(0), 'axis'));
    nodes.push(text((left + width - right) / 2, height - 6, byTokens ? `training data (to ${(Math.max(...places) / unit[0]).toPrecision(3)} ${unit[1]}tokens)` : 'checkpoint', { 'text-anchor': 'middle' }));
    datasets.forEach((d, k) => {
      const known = d.accuracy.map((a, i) => [a, i]).filter(([a]) => a !== null);
      nodes.push(s('path', { d: path(known.map(([a, i]) => [x(places[i]), y(a)])), class: `guide guide${k % 4}` }));
      for (const [a, i] of known) nodes.push(s('g', { 'data-tip': `${d.label}, ${checkpoints[i].label}: ${(100 * a).toFixed(1)} %${d.n[i] ? ` of ${count(d.n[i])}` : ''}` }, s('circle', { cx: x(places[i]), cy: y(a), r: 5, class: `role-${checkpoints[i].role}` }), s('circle', { cx: x(places[i]), cy: y(a), r: 13, class: 'hit' })));
    });
    return canvas(width, height, nodes);
  };
  return h('div', {}, chart(draw, 'Accuracy per checkpoint'),
    numbers('Accuracy', ['Dataset', ...checkpoints.map((c) => c.label)], datasets.map((d) => [d.label, ...d.accuracy.map((a) => (a === null ? '–' : percent(a)))])));
}

// Known and unknown questions at each checkpoint, and what moves between them.
function flowChart(checkpoints, flows) {
  const draw = (width) => {
    const left = 4, right = 4, bottom = 30, bar = Math.max(8, Math.min(26, width / checkpoints.length / 5));
    const step = (width - left - right - bar) / Math.max(1, checkpoints.length - 1);
    // Two numbers stand side by side or, in narrow gaps, one above the other.
    const longest = Math.max(...flows.map((f) => `${count(f.gained)}${count(f.lost)}`.length));
    const narrow = step - bar < 34 + 8 * longest, top = narrow ? 40 : 24, height = 256 + top;
    const total = Math.max(...flows.map((f) => f.kept + f.gained + f.lost + f.unknown));
    const size = (n) => (n / total) * (height - top - bottom);
    const base = height - bottom;
    const nodes = [];
    const ribbon = (x1, a1, b1, x2, a2, b2, kind, about) => {
      const m = (x1 + x2) / 2;
      nodes.push(s('path', { d: `M${x1} ${a1}C${m} ${a1} ${m} ${a2} ${x2} ${a2}L${x2} ${b2}C${m} ${b2} ${m} ${b1} ${x1} ${b1}Z`, class: kind, opacity: kind === 'up' || kind === 'down' ? 0.82 : 0.55, 'data-tip': about }));
    };
    flows.forEach((f, i) => {
      const x1 = left + i * step + bar, x2 = left + (i + 1) * step;
      const [kept, gained, lost, unknown] = [f.kept, f.gained, f.lost, f.unknown].map(size);
      const between = `${checkpoints[i].label} → ${checkpoints[i + 1].label}`;
      // On the left, known below is kept then lost; on the right, kept then gained.
      ribbon(x1, base - kept, base, x2, base - kept, base, 'known-tint', `${between}\n${count(f.kept)} known at both`);
      ribbon(x1, base - kept - lost - gained - unknown, base - kept - lost - gained, x2, base - kept - gained - lost - unknown, base - kept - gained - lost, 'none', `${between}\n${count(f.unknown)} unknown at both`);
      ribbon(x1, base - kept - lost - gained, base - kept - lost, x2, base - kept - gained, base - kept, 'up', `${between}\n${count(f.gained)} gained`);
      ribbon(x1, base - kept - lost, base - kept, x2, base - kept - gained - lost, base - kept - gained, 'down', `${between}\n${count(f.lost)} lost`);
      const shown = [`▲${count(f.gained)}`, `▼${count(f.lost)}`], rows = narrow ? shown : [shown.join(' ')];
      if (x2 - x1 > 26) rows.forEach((row, k) => nodes.push(text((x1 + x2) / 2, 15 + 15 * k, row, { 'text-anchor': 'middle' })));
    });
    checkpoints.forEach((c, i) => {
      const before = flows[i - 1], after = flows[i];
      const known = after ? after.kept + after.lost : before.kept + before.gained;
      const all = after ? after.kept + after.lost + after.gained + after.unknown : before.kept + before.lost + before.gained + before.unknown;
      const x = left + i * step;
      nodes.push(s('rect', { x, width: bar, y: base - size(all), height: size(all - known), class: 'none', rx: 2 }));
      nodes.push(s('rect', { x, width: bar, y: base - size(known), height: size(known), class: 'known', rx: 2, 'data-tip': `${c.label}: ${count(known)} of ${count(all)} known` }));
      nodes.push(text(i === 0 ? x : i === checkpoints.length - 1 ? x + bar : x + bar / 2, height - 10, step < 50 && c.label.length > 6 ? `${c.label.slice(0, 5)}…` : c.label, { 'text-anchor': i === 0 ? 'start' : i === checkpoints.length - 1 ? 'end' : 'middle' }));
    });
    return canvas(width, height, nodes);
  };
  return [chart(draw, 'Gained and lost questions'),
    numbers('Between neighbouring checkpoints', ['', 'known at both', 'gained', 'lost', 'unknown at both'], flows.map((f, i) => [`${checkpoints[i].label} to ${checkpoints[i + 1].label}`, f.kept, f.gained, f.lost, f.unknown]))];
}

function contrastMatrix(names, pairs) {
  const most = Math.max(1, ...pairs.map((p) => p.size));
  const at = (i, j) => pairs.find((p) => p.earlier === i && p.later === j);
  const cell = (i, j) => {
    if (j <= i) return h('td', {});
    const p = at(i, j);
    const node = h('td', { class: p.kept ? '' : 'unused', 'data-tip': `${names[i]} → ${names[j]}: ${count(p.size)} questions\n${count(p.improvement)} improvements, ${count(p.regression)} regressions${p.kept ? '' : '\ntoo small to be used'}` },
      h('a', { href: `#list=flip&pair=${i}-${j}` }, h('b', {}, count(p.size))), h('small', {}, h('a', { class: 'up-text', href: `#list=up&pair=${i}-${j}` }, `▲ ${count(p.improvement)} `), h('a', { class: 'down-text', href: `#list=down&pair=${i}-${j}` }, `▼ ${count(p.regression)}`)));
    if (p.kept) node.style.background = `rgb(var(--heat) / ${(0.06 + 0.2 * p.size / most).toFixed(3)})`;
    return node;
  };
  return h('table', { class: 'matrix' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'earlier ╲ later'), names.slice(1).map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, names.slice(0, -1).map((name, i) => h('tr', {}, h('th', { scope: 'row' }, name), names.slice(1).map((_, j) => cell(i, j + 1))))));
}

// Two axes from 0 to 1, as wide as their card, which most small pictures share.
function square(width, names) {
  const size = width, left = 40, top = 8, high = Math.min(size * 0.72, 300), right = 8;
  const x = scale(0, 1, left, size - right), y = scale(0, 1, top + high, top);
  const nodes = [0, 0.5, 1].flatMap((tick) => [line(x(0), y(tick), x(1), y(tick), 'gridline'), line(x(tick), y(0), x(tick), y(1), 'gridline'), text(left - 6, y(tick) + 4, tick, { 'text-anchor': 'end' }), text(x(tick), top + high + 16, tick, { 'text-anchor': tick === 1 ? 'end' : 'middle' })]);
  nodes.push(text((left + size) / 2, top + high + 32, names[0], { 'text-anchor': 'middle' }), text(-(top + high / 2), 12, names[1], { 'text-anchor': 'middle', transform: 'rotate(-90)' }));
  return { x, y, nodes, size, height: top + high + 38 };
}

function reliabilityPanel(label, look, diagram, before, names) {
  const draw = (width) => {
    const size = width, left = 34, top = 8, high = Math.min(size * 0.8, 320), low = 62, right = 8;
    const x = scale(0, 1, left, size - right), y = scale(0, 1, top + high, top);
    const nodes = [];
    for (const tick of [0, 0.5, 1]) nodes.push(line(x(0), y(tick), x(1), y(tick), 'gridline'), line(x(tick), y(0), x(tick), y(1), 'gridline'), text(left - 6, y(tick) + 4, tick, { 'text-anchor': 'end' }));
    nodes.push(line(x(0), y(0), x(1), y(1), 'chance'));
    const points = diagram.points;
    if (before && before.points.length > 1) nodes.push(s('path', { d: path(before.points.map((p) => [x(p[0]), y(p[1])])), class: 'series before', 'data-tip': names[0] }));
    if (points.length > 1) {
      nodes.push(s('path', { d: `${path([...points.map((p) => [x(p[0]), y(p[2])]), ...points.slice().reverse().map((p) => [x(p[0]), y(p[3])])])}Z`, class: 'band' }));
      nodes.push(s('path', { d: path(points.map((p) => [x(p[0]), y(p[1])])), class: 'series' }));
    }
    for (const p of points) nodes.push(s('circle', { cx: x(p[0]), cy: y(p[1]), r: points.length > 1 ? 7 : 4, class: points.length > 1 ? 'hit' : 'mark', 'data-tip': `Confidence ${short(p[0])}\naccuracy ${short(p[1])} [${short(p[2])}, ${short(p[3])}]` }));
    // The histogram below shares the axis.
    const middle = top + high + 10 + low / 2, bins = diagram.right.length;
    const most = Math.max(1, ...diagram.right, ...diagram.wrong), tall = scale(0, most, 0, low / 2);
    for (let b = 0; b < bins; b++) {
      const at = x(b / bins) + 0.5, wide = x(1 / bins) - x(0) - 1;
      const about = `Confidence ${(b / bins).toFixed(2)} to ${((b + 1) / bins).toFixed(2)}\n${count(diagram.right[b])} correct, ${count(diagram.wrong[b])} incorrect`;
      nodes.push(s('rect', { x: at, width: wide, y: middle - tall(diagram.right[b]), height: tall(diagram.right[b]), class: 'right' }));
      nodes.push(s('rect', { x: at, width: wide, y: middle, height: tall(diagram.wrong[b]), class: 'wrong' }));
      nodes.push(s('rect', { x: at, width: wide, y: middle - low / 2, height: low, class: 'hit', 'data-tip': about }));
    }
    nodes.push(line(x(0), middle, x(1), middle, 'axis'));
    for (const tick of [0, 0.5, 1]) nodes.push(text(x(tick), top + high + low + 26, tick, { 'text-anchor': tick === 1 ? 'end' : 'middle' }));
    nodes.push(text((left + size) / 2, top + high + low + 40, 'confidence', { 'text-anchor': 'middle' }));
    return s('svg', { viewBox: `0 0 ${size} ${top + high + low + 46}`, class: look.class, height: top + high + low + 46, preserveAspectRatio: 'xMinYMin' }, nodes);
  };
  return h('div', { class: 'small' }, h('h4', {}, sign(look), h('span', {}, label)), h('p', { class: 'value' }, `SmoothECE ${short(diagram.smece)}`), chart(draw, `Reliability of ${label}`),
    numbers(`Reliability of ${label}`, ['Confidence', 'Accuracy', 'Lower', 'Upper'], diagram.points.filter((_, i) => i % 5 === 0).map((p) => p.map(short))));
}

function riskPanel(label, look, curves, names) {
  const draw = (width) => {
    const { x, y, nodes, size, height } = square(width, ['coverage', 'risk']);
    curves.forEach((points, k) => {
      if (points.length > 1) nodes.push(s('path', { d: path(points.map((p) => [x(p[0]), y(p[1])])), class: k ? 'series' : 'series before' }));
      points.forEach((p) => nodes.push(s('circle', { cx: x(p[0]), cy: y(p[1]), r: 6, class: 'hit', 'data-tip': `${names[k]}\ncoverage ${short(p[0])}, risk ${short(p[1])}` })));
    });
    return s('svg', { viewBox: `0 0 ${size} ${height}`, class: look.class, height, preserveAspectRatio: 'xMinYMin' }, nodes);
  };
  const rows = curves.flatMap((points, k) => points.filter((_, i) => i % 10 === 0).map((p) => [names[k], ...p.map(short)]));
  return h('div', { class: 'small' }, h('h4', {}, sign(look), h('span', {}, label)), chart(draw, `Risk and coverage of ${label}`),
    numbers(`Risk and coverage of ${label}`, ['Checkpoint', 'Coverage', 'Risk'], rows));
}

// What each threshold gives at both checkpoints: thick lines are precision, thin ones coverage.
function thresholdPanel(label, look, data, selected, target, names) {
  const draw = (width) => {
    const { x, y, nodes, size, height } = square(width, ['threshold', 'share']);
    for (const [low, high] of data.certified) nodes.push(s('rect', { x: x(low), width: Math.max(2, x(high) - x(low)), y: y(1), height: y(0) - y(1), class: 'reached' }));
    if (target !== null) nodes.push(line(x(0), y(target), x(1), y(target), 'chance'));
    for (const cut of selected) nodes.push(line(x(cut), y(0), x(cut), y(1), 'cut'));
    data.curves.forEach((points, k) => {
      for (const [column, kind] of [[1, 'series'], [2, 'series thin']]) {
        const known = points.filter((p) => p[column] !== null);
        if (known.length > 1) nodes.push(s('path', { d: path(known.map((p) => [x(p[0]), y(p[column])])), class: `${kind}${k ? '' : ' before'}` }));
      }
    });
    data.curves[1].forEach((p, i) => nodes.push(s('rect', { x: x(p[0]) - 4, width: 8, y: y(1), height: y(0) - y(1), class: 'hit', 'data-tip': `threshold ${short(p[0])}\n${[0, 1].map((k) => `${names[k]}: ${short(data.curves[k][i][1])} right, answers ${percent(data.curves[k][i][2])}`).join('\n')}` })));
    return s('svg', { viewBox: `0 0 ${size} ${height}`, class: look.class, height, preserveAspectRatio: 'xMinYMin' }, nodes);
  };
  const rows = data.curves[1].map((p, i) => [short(p[0]), ...data.curves.flatMap((of) => [short(of[i][1]), short(of[i][2])])]).filter((_, i) => i % 5 === 0);
  return h('div', { class: 'small' }, h('h4', {}, sign(look), h('span', {}, label)), h('p', { class: 'value' }, `${selected.length ? `threshold ${[...new Set(selected.map(short))].join(', ')}` : 'no threshold'}${target === null ? '' : ` for ${percent(target)}`}`), chart(draw, `Precision and coverage of ${label} against the threshold`),
    numbers(`Thresholds of ${label}`, ['Threshold', ...names.flatMap((name) => [`Precision, ${name}`, `Coverage, ${name}`])], rows));
}

// How many labels of the later checkpoint certify a threshold, by random sheets of each size.
function labelPanel(label, look, data, name) {
  const sizes = data.labels.map((row) => row[0]);
  const draw = (width) => {
    const left = 40, top = 8, high = Math.min(width * 0.5, 200), right = 14;
    const x = scale(0, Math.max(1, sizes.length - 1), left + 10, width - right), y = scale(0, 1, top + high, top);
    const nodes = [0, 0.5, 1].flatMap((tick) => [line(left, y(tick), width - right, y(tick), 'gridline'), text(left - 6, y(tick) + 4, percent(tick), { 'text-anchor': 'end' })]);
    sizes.forEach((n, i) => nodes.push(text(x(i), top + high + 16, count(n), { 'text-anchor': 'middle', class: n === data.enough ? 'strong' : '' })));
    nodes.push(text((left + width) / 2, top + high + 32, `labelled answers of ${name}`, { 'text-anchor': 'middle' }));
    if (data.enough) nodes.push(line(x(sizes.indexOf(data.enough)), y(0), x(sizes.indexOf(data.enough)), y(1), 'cut'));
    for (const [column, kind] of [[1, 'series'], [2, 'series thin']]) nodes.push(s('path', { d: path(data.labels.map((row, i) => [x(i), row[column] === null || row[1] < 0.5 && column === 2 ? null : y(row[column])]).filter((p) => p[1] !== null)), class: kind }));
    data.labels.forEach((row, i) => nodes.push(s('circle', { cx: x(i), cy: y(row[1]), r: 10, class: 'hit', 'data-tip': `${count(row[0])} labels\n${percent(row[1])} of the sheets certify a threshold${row[2] === null ? '' : `,\nwhich answers ${percent(row[2])} of questions`}` })));
    return s('svg', { viewBox: `0 0 ${width} ${top + high + 38}`, class: look.class, height: top + high + 38 }, nodes);
  };
  const words = !data.enough ? 'not even all labels certify a threshold' : data.enough === sizes.at(-1) ? `only all ${count(data.enough)} labels certify a threshold` : `about ${count(data.enough)} labels certify a threshold`;
  return h('div', { class: 'small' }, h('h4', {}, sign(look), h('span', {}, label)), h('p', { class: 'value' }, words), chart(draw, `Labels that certify a threshold of ${label}`),
    numbers(`Labels and thresholds of ${label}`, ['Labels', 'Sheets that certify a threshold', 'Coverage'], data.labels.map((row) => [count(row[0]), ...row.slice(1).map(short)])));
}

// Histograms of confidence before (outline) and after (filled), by what became of the questions.
function shiftPanel(label, look, groups, names) {
  const kinds = [['gained', 'up', '▲'], ['lost', 'down', '▼'], ['unchanged', 'known', '']];
  const total = (bins) => Math.round(bins.reduce((a, b) => a + b, 0));
  const draw = (width) => {
    const left = 4, right = 4, tall = 62, height = kinds.length * (tall + 20) + 38;
    const x = scale(0, 1, left, width - right), nodes = [];
    kinds.forEach(([kind, style, mark], k) => {
      const [before, after] = groups[kind], base = (k + 1) * (tall + 20) + 4, bins = after.length;
      const y = scale(0, Math.max(1, ...before, ...after), 0, tall), wide = x(1 / bins) - x(0);
      after.forEach((n, b) => nodes.push(s('rect', { x: x(b / bins) + 0.5, width: wide - 1, y: base - y(n), height: y(n), class: `${style} soft` })));
      nodes.push(s('path', { d: `${path(before.flatMap((n, b) => [[x(b / bins), base - y(n)], [x((b + 1) / bins), base - y(n)]]))}`, class: 'outline' }));
      nodes.push(line(left, base, width - right, base, 'axis'), text(left, base - tall - 5, `${mark} ${count(total(after))} ${kind}`.trim(), { class: 'strong' }));
      after.forEach((n, b) => nodes.push(s('rect', { x: x(b / bins), width: wide, y: base - tall, height: tall, class: 'hit', 'data-tip': `${kind}, confidence ${(b / bins).toFixed(2)} to ${((b + 1) / bins).toFixed(2)}\n${names[0]}: ${count(before[b])}\n${names[1]}: ${count(n)}` })));
    });
    for (const tick of [0, 0.5, 1]) nodes.push(text(x(tick), height - 18, tick, { 'text-anchor': ['start', 'middle', 'end'][2 * tick] }));
    nodes.push(text(width / 2, height - 4, 'confidence', { 'text-anchor': 'middle' }));
    return canvas(width, height, nodes);
  };
  const mean = (bins) => bins.reduce((a, n, b) => a + n * (b + 0.5) / bins.length, 0) / Math.max(1, total(bins));
  return h('div', { class: 'small' }, h('h4', {}, sign(look), h('span', {}, label)), chart(draw, `Confidence of ${label} in gained, lost and unchanged questions, at ${names[0]} and at ${names[1]}`),
    numbers(`Confidence of ${label}, middle of its bins`, ['', 'Questions', `Mean, ${names[0]}`, `Mean, ${names[1]}`], kinds.map(([kind]) => [kind, count(total(groups[kind][1])), ...groups[kind].map((bins) => short(mean(bins)))])));
}

function pairPanel(label, look, dots, value, names, open) {
  const draw = (width) => {
    const size = width, height = Math.min(width, 380), left = 44, top = 8, bottom = 38, right = 8;
    const x = scale(0, 1000, left, size - right), y = scale(0, 1000, height - bottom, top);
    const nodes = [];
    for (const tick of [0, 500, 1000]) nodes.push(line(x(0), y(tick), x(1000), y(tick), 'gridline'), line(x(tick), y(0), x(tick), y(1000), 'gridline'), text(left - 6, y(tick) + 4, tick / 1000, { 'text-anchor': 'end' }), text(x(tick), height - bottom + 16, tick / 1000, { 'text-anchor': tick === 1000 ? 'end' : 'middle' }));
    nodes.push(line(x(0), y(0), x(1000), y(1000), 'chance'));
    nodes.push(text((left + size) / 2, height - 6, `confidence at ${names[0]}`, { 'text-anchor': 'middle' }), s('text', { transform: `translate(10 ${(top + height - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle' }, `at ${names[1]}`));
    // Confidences of few samples have few values: questions at one place are one larger point.
    const places = new Map();
    for (const d of dots) places.set(`${d.before} ${d.after} ${d.up}`, [...(places.get(`${d.before} ${d.after} ${d.up}`) || []), d]);
    for (const some of [...places.values()].sort((a, b) => b.length - a.length)) {
      const [d] = some, r = Math.min(16, 3.1 * Math.sqrt(some.length));
      const shape = d.up ? s('circle', { cx: x(d.before), cy: y(d.after), r }) : s('rect', { x: x(d.before) - 0.85 * r, y: y(d.after) - 0.85 * r, width: 1.7 * r, height: 1.7 * r });
      shape.setAttribute('class', `dot ${d.up ? 'up' : 'down'}`);
      shape.setAttribute('data-question', d.question);
      if (some.length > 1) shape.setAttribute('data-tip', `${count(some.length)} questions`);
      nodes.push(shape);
    }
    const picture = s('svg', { viewBox: `0 0 ${size} ${height}`, height, preserveAspectRatio: 'xMinYMin' }, nodes);
    picture.addEventListener('click', (event) => { const q = event.target.getAttribute('data-question'); if (q !== null) open(Number(q)); });
    return picture;
  };
  const share = (some, good) => (some.length ? percent(some.filter(good).length / some.length) : '–');
  const ups = share(dots.filter((d) => d.up), (d) => d.after > d.before), downs = share(dots.filter((d) => !d.up), (d) => d.after < d.before);
  return h('div', { class: 'small' }, h('h4', {}, sign(look), h('span', {}, label)),
    h('p', { class: 'value' }, `Δ₀ᵇ ${short(value.delta0_balanced)} · change AUC ${short(value.change_auc)} · ${ups} of ▲ above, ${downs} of ▼ below`), chart(draw, `${label}: confidence at ${names[1]} against ${names[0]}`));
}

// A table of values as a heat map: rows and columns are checkpoints.
function heatTable(corner, rows, columns, value, format, low, high) {
  return h('table', { class: 'matrix' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, corner), columns.map((c) => h('th', { scope: 'col' }, c)))),
    h('tbody', {}, rows.map((row, i) => h('tr', {}, h('th', { scope: 'row' }, row), columns.map((_, j) => {
      const v = value(i, j);
      const node = h('td', { class: v === null || v === undefined ? 'empty' : '' }, v === null || v === undefined ? '–' : format(v));
      if (v !== null && v !== undefined) node.style.background = `rgb(var(--heat) / ${(0.5 * Math.max(0, Math.min(1, (v - low) / (high - low)))).toFixed(3)})`;
      return node;
    })))));
}

function varianceChart(rows) {
  const layers = rows.map((r) => r.layer);
  const draw = (width) => {
    const height = 240, left = 40, right = 12, top = 12, bottom = 38;
    const x = scale(Math.min(...layers), Math.max(...layers, Math.min(...layers) + 1), left + 6, width - right - 6), y = scale(-1, 1, height - bottom, top);
    const nodes = [-1, -0.5, 0, 0.5, 1].flatMap((tick) => [line(left, y(tick), width - right, y(tick), tick ? 'gridline' : 'axis'), text(left - 6, y(tick) + 4, String(tick).replace('-', '−'), { 'text-anchor': 'end' })]);
    nodes.push(s('path', { d: path(rows.map((r) => [x(r.layer), y(r.mean_rho)])), class: 'guide' }));
    for (const r of rows) nodes.push(s('circle', { cx: x(r.layer), cy: y(r.mean_rho), r: 4.5, class: 'known', 'data-tip': `Layer ${r.layer}\nmean ρ ${short(r.mean_rho)}, median ${short(r.median_rho)}\n${count(r.n)} questions` }));
    layers.forEach((l) => { if (layers.length <= 12 || l % 4 === 0) nodes.push(text(x(l), height - bottom + 16, l, { 'text-anchor': 'middle' })); });
    nodes.push(text((left + width) / 2, height - 4, 'layer', { 'text-anchor': 'middle' }));
    return canvas(width, height, nodes);
  };
  return chart(draw, 'Mean rank correlation of hidden-state variance with training, by layer');
}

function headroomChart(rows) {
  const draw = (width) => {
    const height = 40 + rows.length * 34, left = Math.min(180, width * 0.4), right = 20;
    const low = Math.min(0, ...rows.map((r) => r.lower)), high = Math.max(0.1, ...rows.map((r) => r.upper));
    const x = scale(low, high, left, width - right);
    const nodes = ticksBetween(low, high, 0.1).flatMap((tick) => [line(x(tick), 6, x(tick), height - 26, tick ? 'gridline' : 'chance'), text(x(tick), height - 8, tick.toFixed(1).replace('-', '−'), { 'text-anchor': 'middle' })]);
    rows.forEach((r, i) => {
      const y = 24 + i * 34;
      nodes.push(text(0, y + 4, r.label, { class: 'strong' }), s('line', { x1: x(r.lower), x2: x(r.upper), y1: y, y2: y, class: 'guide' }), s('circle', { cx: x(r.value), cy: y, r: 5.5, class: 'known', 'data-tip': `${r.label}\n${short(r.value)} [${short(r.lower)}, ${short(r.upper)}]\nThe verifier’s own error rate: ${short(r.error_rate)}\n${count(r.n)} questions` }));
    });
    return canvas(width, height, nodes);
  };
  return chart(draw, 'Headroom of the oracle over the verifier');
}

// Confidence in the checkpoints' answers to one question: main estimators by name, and the others
// faded where there is room.
function confidenceChart(checkpoints, series, looks, right) {
  const known = (one) => one.values.map((v, i) => [v, i]).filter(([v]) => v >= 0);
  const main = series.filter((one) => !one.faded && known(one).length);
  const legend = h('div', { class: 'legend' }, main.map((one) => h('span', {}, sign(looks[one.estimator]), one.label)));
  const margin = 22 + 6.6 * Math.max(0, ...main.map((one) => one.label.length));
  const draw = (width) => {
    const named = width > 520 && margin < 0.45 * width && main.length <= 16;
    legend.hidden = named;
    const height = 270, left = 34, end = named ? margin : 14, top = 10, bottom = 34;
    const x = scale(0, Math.max(1, checkpoints.length - 1), left + 12, width - end - 12), y = scale(0, 1000, height - bottom, top);
    const nodes = [];
    for (const tick of [0, 250, 500, 750, 1000]) nodes.push(line(left, y(tick), width - end, y(tick), 'gridline'), text(left - 6, y(tick) + 4, tick / 1000, { 'text-anchor': 'end' }));
    checkpoints.forEach((c, i) => nodes.push(text(x(i), height - bottom + 18, `${right[i] === '1' ? '✓' : right[i] === '0' ? '✗' : '–'} ${c.label}`, { 'text-anchor': 'middle', class: right[i] === '1' ? 'strong up' : right[i] === '0' ? 'strong down' : '' })));
    const others = width > 520 ? series.filter((one) => one.faded && known(one).length) : [];
    for (const one of [...others, ...main]) {
      const look = looks[one.estimator];
      nodes.push(s('g', { class: `${look.class}${one.faded ? ' faded' : ''}`, 'data-tip': `${one.label}\n${known(one).map(([v, i]) => `${checkpoints[i].label}: ${short(v / 1000)}`).join('\n')}` },
        s('path', { d: path(known(one).map(([v, i]) => [x(i), y(v)])), class: 'series', 'stroke-dasharray': look.dash || null }), known(one).map(([v, i]) => glyph(look, x(i), y(v), 12))));
    }
    if (named) {
      const places = spread(main.map((one) => y(one.values.findLast((v) => v >= 0)) + 4), 14);
      const over = Math.max(0, ...places.map((p) => p - (height - bottom + 8)));
      main.forEach((one, i) => nodes.push(s('g', { class: looks[one.estimator].class }, text(width - end + 4, places[i] - over, one.label, { class: 'label' }))));
    }
    return canvas(width, height, nodes);
  };
  return h('div', {}, chart(draw, 'Confidence along the checkpoints'), legend);
}
