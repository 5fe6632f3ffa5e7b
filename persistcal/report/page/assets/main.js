// Puts the page together: theme, tables, charts of the chosen model and dataset, explorer.

async function copyText(content, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    // A page that was opened from disk may not be allowed to; the old way still works.
    const area = h('textarea', { 'aria-hidden': true });
    area.value = content;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = before; }, 1200);
}

function startTheme() {
  const stored = () => { try { return localStorage.getItem('persistcal-theme'); } catch { return null; } };
  const apply = (theme) => { if (theme) document.documentElement.dataset.theme = theme; };
  apply(stored());
  byId('theme').addEventListener('click', () => {
    const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    const next = (document.documentElement.dataset.theme || system) === 'dark' ? 'light' : 'dark';
    apply(next);
    try { localStorage.setItem('persistcal-theme', next); } catch { /* this visit alone, then */ }
  });
}

function startSorting() {
  document.addEventListener('click', (event) => {
    const head = event.target.closest('table.sortable thead th');
    if (!head || !event.target.closest('button')) return;
    const whole = head.closest('table'), column = head.cellIndex;
    // The first click puts the best on top: the largest number, but the first word.
    const numeric = head.classList.contains('num'), lowerFirst = !numeric || head.textContent.includes('↓');
    const now = head.getAttribute('aria-sort');
    const ascending = now ? now === 'descending' : lowerFirst;
    for (const other of whole.querySelectorAll('thead th')) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
    const value = (row) => { const v = row.cells[column].dataset.v; return numeric ? (v === '' ? null : Number(v)) : v; };
    for (const body of whole.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains('block'));
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        return (ascending ? 1 : -1) * (numeric ? x - y : x.localeCompare(y, 'en', { numeric: true }));
      });
      body.append(...rows);
    }
  });
}

function startNavigation() {
  // What is scrolled to stays below the bar, which takes two lines in a narrow window.
  const bar = document.querySelector('.bar');
  new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${bar.offsetHeight + 12}px`; }).observe(bar);
  document.querySelectorAll('.scroll').forEach((node) => boxes.observe(node));
  const links = [...document.querySelectorAll('.bar nav a')];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.find((a) => a.hash === `#${entry.target.id}`);
      if (link && entry.isIntersecting) { links.forEach((a) => a.removeAttribute('aria-current')); link.setAttribute('aria-current', 'true'); }
    }
  }, { rootMargin: '-20% 0px -75% 0px' });
  document.querySelectorAll('section[id]').forEach((section) => seen.observe(section));
}

const MOST_POINTS = 7; // more of them would lie on each other

function drawHero(study) {
  const main = new Set(study.main);
  const all = study.hero.flatMap((facet) => facet.points.map((p) => p.estimator));
  const more = all.some((e) => !main.has(e));
  const notes = ['hero-note', 'hero-rows-note'].map(byId);
  const draw = (everything) => {
    const names = [...new Set(all)].filter((e) => everything || main.has(e)), many = names.length > MOST_POINTS;
    byId('hero').replaceChildren(...study.hero.map((facet) => (many ? heroRows : heroFacet)({ ...facet, points: facet.points.filter((p) => names.includes(p.estimator)) }, study.hero.length > 1 ? facet.title : '', study.looks, main)));
    byId('hero-legend').replaceChildren(...(many ? [] : names).map((e) => h('span', {}, sign(study.looks[e]), study.labels[e] || e)));
    notes.forEach((note, i) => { note.hidden = many !== (i === 1); });
  };
  if (more) byId('hero-controls').append(chips([[false, 'Main estimators'], [true, 'All']], false, draw, 'Estimators'));
  draw(false);
}

function drawAccuracy(study, part) {
  const of = study.accuracy.find((one) => one.model === part.model);
  byId('accuracy').replaceChildren(accuracyChart(of.checkpoints, of.datasets));
  const roles = new Set(of.checkpoints.map((c) => c.role));
  const dash = (k) => s('svg', { class: 'dash', viewBox: '0 0 26 8', 'aria-hidden': true }, line(0, 4, 26, 4, `guide guide${k % 4}`));
  byId('accuracy-legend').replaceChildren(...of.datasets.map((d, k) => h('span', {}, dash(k), d.label)), ...[['earlier', 'earlier checkpoint (training)'], ['evaluation', 'evaluation checkpoint']].filter(([role]) => roles.has(role)).map(([role, name]) => h('span', {}, h('i', { class: `swatch role-${role}` }), name)));
}

// Baselines, whose confidence is the same for all questions of a checkpoint, have no pictures.
const pictured = (part, all) => {
  const shown = part.estimators.map((e, k) => [e, k]).filter(([e]) => all || e.main);
  return shown.every(([e]) => e.baseline) ? shown : shown.filter(([e]) => !e.baseline);
};

// A choice between the main estimators and all, unless these are the same.
const mainOrAll = (estimators, draw) => (estimators.some((e) => e.main) && estimators.some((e) => !e.main) ? [chips([[false, 'Main estimators'], [true, 'All']], false, draw, 'Estimators')] : []);

function drawCalibration(part, study) {
  const evaluation = part.checkpoints.slice(part.n_earlier);
  const anyMain = part.estimators.some((e) => e.main);
  const state = { checkpoint: evaluation.length - 1, all: !anyMain };
  const draw = () => byId('reliability').replaceChildren(...pictured(part, state.all).map(([e, k]) => reliabilityPanel(e.label, study.looks[e.estimator], part.calibration[k][state.checkpoint], state.checkpoint ? part.calibration[k][0] : null, [evaluation[0].label, evaluation[state.checkpoint].label])));
  byId('reliability-controls').replaceChildren(
    chips(evaluation.map((c, i) => [i, c.label]), state.checkpoint, (i) => { state.checkpoint = i; draw(); }, 'Checkpoint'),
    ...mainOrAll(part.estimators, (all) => { state.all = all; draw(); }));
  draw();
}

function drawRisks(part, study) {
  const evaluation = part.checkpoints.slice(part.n_earlier), names = [evaluation[0], evaluation.at(-1)].map((c) => c.label);
  const anyMain = part.estimators.some((e) => e.main);
  const draw = (all) => {
    const chosen = pictured(part, all);
    byId('risks').replaceChildren(...chosen.map(([e, k]) => riskPanel(e.label, study.looks[e.estimator], part.risks[k], names)));
    const cuts = part.thresholds;
    byId('cuts').replaceChildren(...(cuts ? chosen : []).map(([e, k]) => thresholdPanel(e.label, study.looks[e.estimator], cuts.estimators[k], cuts.selected[k], cuts.target, cuts.names)));
    byId('labels').replaceChildren(...(cuts ? chosen : []).filter(([, k]) => cuts.estimators[k].labels.length).map(([e, k]) => labelPanel(e.label, study.looks[e.estimator], cuts.estimators[k], cuts.names[1])));
    byId('labels').parentElement.hidden = !byId('labels').firstChild;
  };
  if (evaluation.length < 2) { byId('risks').replaceChildren(h('p', { class: 'note' }, 'There is only one checkpoint.')); byId('risks-controls').replaceChildren(); byId('cuts').replaceChildren(); byId('labels').parentElement.hidden = true; return; }
  byId('risks-controls').replaceChildren(...mainOrAll(part.estimators, draw), h('span', { class: 'note' }, `Dashed: ${names[0]}. Solid: ${names[1]}. `, part.broken && h('a', { href: '#questions' }, `${count(part.broken.ids.length)} confident answer${part.broken.ids.length === 1 ? '' : 's'} broke`)));
  draw(!anyMain);
}

function drawPairs(part, columns, study, explorer) {
  const evaluation = part.checkpoints.slice(part.n_earlier);
  const usable = part.pairs.map((p, i) => [p, i]).filter(([p]) => p.size);
  if (!usable.length) { byId('pairs').replaceChildren(h('p', { class: 'note' }, 'No question changed between two checkpoints.')); byId('pairs-controls').replaceChildren(); byId('shifts').replaceChildren(); return; }
  const anyMain = part.estimators.some((e) => e.main);
  const largest = usable.reduce((a, b) => (Math.min(b[0].improvement, b[0].regression) > Math.min(a[0].improvement, a[0].regression) ? b : a));
  // The pair of the verdict comes first, if its confidences are here.
  const first = usable.find(([p]) => part.update && p.earlier === part.update[0] && p.later === part.update[1]);
  const state = { pair: (first || largest)[1], all: !anyMain };
  const draw = () => {
    const pair = part.pairs[state.pair], names = [evaluation[pair.earlier].label, evaluation[pair.later].label];
    const [was, is] = [pair.earlier, pair.later].map((k) => columns.correct[part.n_earlier + k]);
    const questions = columns.ids.map((_, i) => i).filter((i) => was[i] !== '-' && is[i] !== '-' && was[i] !== is[i]);
    const chosen = pictured(part, state.all);
    byId('shifts').replaceChildren(...chosen.map(([e, k]) => shiftPanel(e.label, study.looks[e.estimator], part.shifts[k][state.pair], names)));
    byId('pairs').replaceChildren(...chosen.map(([e, k]) => {
      const dots = questions.map((i) => ({ question: i, up: is[i] === '1', before: columns.confidence[k][pair.earlier][i], after: columns.confidence[k][pair.later][i] })).sort((a, b) => (a.question * 7919) % 101 - (b.question * 7919) % 101);
      return pairPanel(e.label, study.looks[e.estimator], dots, part.pair_metrics[k][state.pair], names, (i) => explorer.show(i, { focus: true }));
    }));
    byId('pairs-note').textContent = `${count(pair.size)} questions: ${count(pair.improvement)} gained, ${count(pair.regression)} lost.${questions.length < pair.size ? ` The points are a sample of ${count(questions.length)}.` : ''}`;
  };
  const select = h('select', { 'aria-label': 'Pair of checkpoints', onchange: (event) => { state.pair = Number(event.target.value); draw(); } }, options(usable.map(([p, i]) => [String(i), `${evaluation[p.earlier].label} → ${evaluation[p.later].label}${p.kept ? '' : ' (too small to be used)'}`])));
  select.value = String(state.pair);
  byId('pairs-controls').replaceChildren(select,
    ...mainOrAll(part.estimators, (all) => { state.all = all; draw(); }), h('span', { class: 'note', id: 'pairs-note' }));
  draw();
}

function drawAnalyses(study) {
  const grid = byId('analyses-grid');
  if (!grid) return;
  const { transfer, variance, headroom, similarity } = study.analyses;
  const panel = (wide, title, note, ...content) => grid.append(h('div', { class: `panel ${wide}` }, h('h3', {}, title), h('p', { class: 'note' }, note), content));
  for (const one of transfer) panel('w6', one.title, 'AUC on all questions of adapters trained at one checkpoint (rows) and used at another (columns). An adapter that transfers leaves the matrix even.', h('div', { class: 'scroll' }, heatTable('trained ╲ used', one.rows, one.columns, (i, j) => one.values[i][j], short, 0.5, 0.95)));
  for (const one of similarity) panel('w6', `Similarity of weights: ${one.title}`, 'Cosine of the flattened weights of two checkpoints.', h('div', { class: 'scroll' }, heatTable('', one.names, one.names, (i, j) => one.values[i][j], short, Math.min(...one.values.flat().filter((v) => v !== null)) - 0.05, 1)));
  for (const one of variance) panel('w6', `Hidden states: ${one.title}`, 'Rank correlation between the place in training and the variance of hidden states over adapter seeds, mean over questions.', varianceChart(one.rows),
    numbers('Rank correlation', ['Layer', 'mean ρ', 'median ρ'], one.rows.map((r) => [r.layer, short(r.mean_rho), short(r.median_rho)])));
  if (headroom.length) panel('w6', 'Headroom over the verifier', 'Contrast-set AUC of the oracle minus that of the verifier, with 95 % bootstrap intervals.', headroomChart(headroom),
    numbers('Headroom', ['', 'value', 'lower', 'upper'], headroom.map((r) => [r.label, short(r.value), short(r.lower), short(r.upper)])));
}

async function start() {
  startTheme();
  startSorting();
  startNavigation();
  const study = await unpack('study-data');
  document.addEventListener('click', (event) => {
    const button = event.target.closest('button.copy');
    if (button) copyText(study.tables[button.closest('[data-table]').dataset.table][button.dataset.what], button);
  });
  drawHero(study);
  drawAnalyses(study);
  const drawPart = (k) => {
    const part = study.parts[k];
    document.querySelectorAll('.verdict').forEach((node) => { node.hidden = Number(node.dataset.part) !== k; });
    document.querySelectorAll('.part-name').forEach((node) => { node.textContent = study.parts.length > 1 ? part.label : ''; });
    drawAccuracy(study, part);
    byId('flows').replaceChildren(...(part.flows.length ? flowChart(part.checkpoints, part.flows) : [h('p', { class: 'note' }, 'There is only one checkpoint.')]));
    byId('matrix').replaceChildren(contrastMatrix(part.checkpoints.slice(part.n_earlier).map((c) => c.label), part.pairs));
    drawCalibration(part, study);
    drawRisks(part, study);
  };
  drawPart(0);
  document.documentElement.dataset.painted = 'true';

  if (document.readyState === 'loading') await new Promise((done) => document.addEventListener('DOMContentLoaded', done));
  const explorer = new Explorer(study, await unpack('explorer-data'));
  const choose = (k) => {
    explorer.choosePart(k);
    drawPairs(study.parts[k], explorer.columns, study, explorer);
  };
  const select = byId('part');
  if (select) select.addEventListener('change', () => { drawPart(Number(select.value)); choose(Number(select.value)); });
  explorer.onPart = (k) => { if (select) select.value = String(k); drawPart(k); choose(k); };
  choose(0);
  explorer.follow(location.hash);
  addEventListener('hashchange', () => explorer.follow(location.hash));
  document.documentElement.dataset.ready = 'true';
}

start();
