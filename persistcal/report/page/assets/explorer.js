// The explorer: filters over columns of the packed data, a list that draws only what is seen, and
// a card for the question that is open.

const ROW = 62;
const COLUMNS = ['Checkpoint', 'Answer', 'Probability', 'Label'];
const LABELS = ['correct', 'incorrect', 'not attempted'];

class Explorer {
  constructor(study, data) {
    Object.assign(this, { study, data, part: 0, found: [], open: null, prepared: new Map() });
    this.list = byId('list');
    this.card = byId('card');
    this.list.addEventListener('scroll', () => this.drawRows(), { passive: true });
    new ResizeObserver(() => this.drawRows()).observe(this.list);
    this.list.addEventListener('click', (event) => {
      const row = event.target.closest('.row');
      if (row) this.show(Number(row.dataset.question));
    });
    for (const id of ['category', 'from', 'to', 'change', 'who', 'verdict', 'side', 'waiting']) byId(id).addEventListener('change', () => this.pick(false));
    for (const id of ['search', 'above']) byId(id).addEventListener('input', () => this.pick(false));
    byId('clear').addEventListener('click', () => this.clear());
    document.addEventListener('keydown', (event) => this.key(event));
  }

  get about() { return this.study.parts[this.part]; }
  get columns() { return this.data.parts[this.part]; }

  // What filters read, made once per part: flat text to search, codes, categories.
  prepare() {
    if (this.prepared.has(this.part)) return this.prepared.get(this.part);
    const { texts } = this.data, c = this.columns, n = c.ids.length;
    const lower = new Map();
    const small = (i) => { if (!lower.has(i)) lower.set(i, texts[i].toLowerCase()); return lower.get(i); };
    const words = c.ids.map((id) => [id.toLowerCase()]);
    const waiting = new Uint8Array(n);
    const starts = [];
    if (c.question) {
      for (let i = 0; i < n; i++) {
        words[i].push(small(c.question[i]), small(c.category[i]), ...c.references[i].map(small));
        for (const own of c.truths) if (own) words[i].push(...own[i].map(small));
      }
      c.clusters.forEach((some, k) => {
        if (!some) return;
        const start = new Uint32Array(n + 1);
        let at = 0;
        for (let i = 0; i < n; i++) {
          start[i] = at;
          for (let m = some.n[i]; m > 0; m--, at++) {
            if (m === some.n[i]) words[i].push(small(some.answer[at]));
            if (some.label[at] === -2) waiting[i] = 1;
          }
        }
        start[n] = at;
        starts[k] = start;
      });
    }
    const ready = { text: words.map((some) => some.join('\n')), waiting, starts, confidence: c.confidence.map((rows) => rows.map((row) => Int16Array.from(row))) };
    this.prepared.set(this.part, ready);
    return ready;
  }

  choosePart(part) {
    this.part = part;
    this.open = null;
    const { about, columns, data } = this;
    const categories = columns.category ? [...new Set(columns.category)].map((i) => [String(i), data.texts[i] || '(none)']).sort((a, b) => a[1].localeCompare(b[1], 'en', { numeric: true })) : [];
    byId('category').replaceChildren(...options([['', 'all'], ...categories]));
    byId('category').parentElement.hidden = categories.length < 2;
    const checkpoints = about.checkpoints.map((c, i) => [String(i), c.label]);
    byId('from').replaceChildren(...options(checkpoints));
    byId('to').replaceChildren(...options(checkpoints));
    byId('from').value = String(Math.min(about.n_earlier, checkpoints.length - 1));
    byId('to').value = String(checkpoints.length - 1);
    byId('who').replaceChildren(...options([['', 'any confidence'], ...about.estimators.map((e, i) => [String(i), e.label])]));
    byId('waiting-label').hidden = !this.prepare().waiting.some(Boolean);
    this.card.replaceChildren(h('p', { class: 'empty-card' }, 'Choose a question.'));
    const { broken } = about;
    byId('lists').replaceChildren(chips([[true, `Confident answers that broke (${count(broken ? broken.ids.length : 0)})`], [false, 'All questions']], true, (chosen) => this.clear(chosen), 'List'), h('span', { class: 'note' }, broken && broken.about));
    this.clear(true);
  }

  clear(broken = false) {
    byId('search').value = '';
    for (const id of ['category', 'change', 'who']) byId(id).value = '';
    byId('waiting').checked = false;
    this.pick(broken);
  }

  // Lists the confident answers that broke, or the questions that pass the filters.
  pick(broken) {
    const { broken: some } = this.about;
    this.broken = broken && some ? some.ids.map((id) => this.columns.ids.indexOf(id)).filter((i) => i >= 0) : null;
    byId('lists').hidden = !some;
    byId('lists').querySelectorAll('button').forEach((button, k) => button.setAttribute('aria-pressed', String(k === (this.broken ? 0 : 1))));
    byId('lists').lastChild.hidden = !this.broken;
    this.filter();
  }

  filter() {
    const { columns } = this, ready = this.prepare(), n = columns.ids.length;
    const search = byId('search').value.trim().toLowerCase();
    const category = byId('category').value, change = byId('change').value, who = byId('who').value;
    const from = columns.correct[Number(byId('from').value)], to = columns.correct[Number(byId('to').value)];
    const kinds = { flip: ['01', '10'], up: ['01'], down: ['10'], both: ['11'], neither: ['00'] }[change];
    const limit = Math.round(1000 * Number(byId('above').value)), above = byId('side').value === 'above';
    const said = byId('verdict').value === 'right' ? '1' : '0', waits = byId('waiting').checked;
    const { n_earlier: first } = this.about;
    const stated = (i) => ready.confidence[Number(who)].some((row, k) => columns.correct[first + k][i] === said && row[i] >= 0 && (above ? row[i] > limit : row[i] < limit));
    const found = [];
    for (let i = 0; i < n && !this.broken; i++) {
      if (category && columns.category[i] !== Number(category)) continue;
      if (kinds && !kinds.includes(from[i] + to[i])) continue;
      if (waits && !ready.waiting[i]) continue;
      if (who && !stated(i)) continue;
      if (search && !ready.text[i].includes(search)) continue;
      found.push(i);
    }
    this.found = this.broken || found;
    byId('count').textContent = `${count(this.found.length)} of ${count(n)} questions`;
    this.list.scrollTop = 0;
    this.list.replaceChildren(h('div', { style: undefined }));
    this.list.firstChild.style.height = `${this.found.length * ROW}px`;
    this.drawn = new Map();
    this.drawRows();
  }

  questionText(i) { return this.columns.question ? this.data.texts[this.columns.question[i]] : this.columns.ids[i]; }

  strip(i) {
    const { correct } = this.columns, first = this.about.n_earlier;
    return h('span', { class: 'strip', role: 'img', 'aria-label': correct.map((row, k) => `${this.about.checkpoints[k].label} ${{ 1: 'correct', 0: 'wrong' }[row[i]] || 'no answer'}`).join(', ') },
      correct.map((row, k) => [k === first && k > 0 && h('i', { class: 'gap' }), h('i', { class: { 1: 'ok', 0: 'bad' }[row[i]] || '' })]));
  }

  sureness(i) {
    const { broken: { member }, update } = this.about;
    return `confidence ${update.map((k) => short(this.columns.confidence[member][k][i] / 1000)).join(' → ')}`;
  }

  drawRows() {
    if (!this.drawn) return;
    const top = Math.max(0, Math.floor(this.list.scrollTop / ROW) - 4), end = Math.min(this.found.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW) + 4);
    for (const [place, row] of this.drawn) if (place < top || place >= end) { row.remove(); this.drawn.delete(place); }
    for (let place = top; place < end; place++) {
      if (this.drawn.has(place)) continue;
      const i = this.found[place];
      const row = h('div', { class: 'row', role: 'option', id: `row-${i}`, 'aria-selected': String(i === this.open), 'aria-setsize': this.found.length, 'aria-posinset': place + 1, 'data-question': i },
        h('div', { class: 'q', dir: 'auto' }, this.questionText(i).slice(0, 300)),
        h('div', { class: 'under' }, this.strip(i), h('span', {}, this.broken ? this.sureness(i) : this.columns.category ? this.data.texts[this.columns.category[i]] : '')));
      row.style.top = `${place * ROW}px`;
      this.drawn.set(place, row);
      this.list.append(row);
    }
  }

  // Opens the card of a question; its address is that of the card.
  show(i, { address = true, focus = false } = {}) {
    this.open = i;
    for (const row of this.drawn.values()) row.setAttribute('aria-selected', String(Number(row.dataset.question) === i));
    this.list.setAttribute('aria-activedescendant', `row-${i}`);
    const place = this.found.indexOf(i);
    if (place >= 0) {
      const y = place * ROW;
      if (y < this.list.scrollTop) this.list.scrollTop = y;
      else if (y + ROW > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = y + ROW - this.list.clientHeight;
      this.drawRows();
    }
    this.card.replaceChildren(...this.cardOf(i));
    this.card.scrollTop = 0;
    if (address) history.replaceState(null, '', this.address(i));
    if (focus) { goTo(innerWidth < 900 ? this.card : this.card.parentNode); this.card.focus({ preventScroll: true }); }
  }

  address(i) {
    const where = this.study.parts.length > 1 ? `&in=${encodeURIComponent(this.about.key)}` : '';
    return `#q=${encodeURIComponent(this.columns.ids[i])}${where}`;
  }

  // Lists the questions that a count is about, such as #list=up&pair=0-1&part=0.
  followList(kind, earlier, later, part) {
    if (part !== undefined && Number(part) !== this.part) this.onPart(Number(part));
    this.clear(kind === 'broken');
    if (kind !== 'broken') {
      const { n_earlier: first } = this.about;
      byId('change').value = kind;
      if (earlier !== undefined) [byId('from').value, byId('to').value] = [earlier, later].map((k) => String(first + Number(k)));
      this.filter();
    }
    history.replaceState(null, '', '#questions');
    goTo(byId('questions'));
    return true;
  }

  // Follows an address; says whether it was one of a question or of a list.
  follow(hash) {
    const list = /^#list=(\w+)(?:&pair=(\d+)-(\d+))?(?:&part=(\d+))?$/.exec(hash);
    if (list) return this.followList(...list.slice(1));
    const match = /^#q=([^&]*)(?:&in=(.*))?$/.exec(hash);
    if (!match) return false;
    let id, where;
    try { [id, where] = [decodeURIComponent(match[1]), match[2] && decodeURIComponent(match[2])]; } catch { return false; }
    const parts = this.study.parts.map((_, k) => k).filter((k) => !where || this.study.parts[k].key === where);
    const part = [this.part, ...parts].find((k) => parts.includes(k) && this.data.parts[k].ids.includes(id));
    if (part === undefined) {
      this.card.replaceChildren(h('p', { class: 'empty-card' }, `The question “${id}” is not on this page.`));
      goTo(byId('questions'));
      return true;
    }
    if (part !== this.part) this.onPart(part);
    const i = this.columns.ids.indexOf(id);
    if (!this.found.includes(i)) this.clear();
    this.show(i, { address: false, focus: true });
    return true;
  }

  move(by) {
    const place = this.found.indexOf(this.open), next = place < 0 ? 0 : place + by;
    if (this.found[next] !== undefined) this.show(this.found[next]);
  }

  key(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/' && !typing) { event.preventDefault(); goTo(byId('questions')); byId('search').focus({ preventScroll: true }); return; }
    if (event.key === 'Escape' && event.target.closest('#questions')) { this.clear(); this.list.focus({ preventScroll: true }); return; }
    const inList = event.target === this.list, inSearch = event.target.id === 'search', inCard = this.card.contains(event.target);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key] || (inList || inCard ? { j: 1, k: -1 }[event.key] : 0);
    if (step && (inList || inSearch || (inCard && !event.key.startsWith('Arrow') && !event.key.startsWith('Page')))) { event.preventDefault(); this.move(step); }
    if (inList && event.key === 'Home' && this.found.length) { event.preventDefault(); this.show(this.found[0]); }
    if (inList && event.key === 'End' && this.found.length) { event.preventDefault(); this.show(this.found.at(-1)); }
    if (event.key === 'Enter' && (inList || inSearch)) { if (this.open === null || !this.found.includes(this.open)) this.move(1); this.card.focus(); }
  }

  cardOf(i) {
    const { about, columns, data } = this, ready = this.prepare();
    const words = (place, clamp) => h('span', { class: `text${clamp ? ' clamp' : ''}`, dir: 'auto' }, data.texts[place]);
    const copy = h('button', { class: 'button quiet', type: 'button', onclick: () => copyText(new URL(this.address(i), location.href).href, copy) }, 'Copy link');
    const nodes = [
      h('div', { class: 'tools' }, h('button', { class: 'button quiet', type: 'button', 'aria-label': 'Previous question', onclick: () => this.move(-1) }, '↑'), h('button', { class: 'button quiet', type: 'button', 'aria-label': 'Next question', onclick: () => this.move(1) }, '↓'), copy),
      h('h3', { class: 'asked', dir: 'auto' }, this.questionText(i)),
    ];
    if (columns.question) {
      const listed = (some) => some.flatMap((r, k) => [k ? ' · ' : '', h('b', {}, words(r))]);
      const own = about.checkpoints.map((c, k) => columns.truths[k] && columns.truths[k][i].length && h('span', {}, `Accepted at ${c.label}: `, listed(columns.truths[k][i])));
      nodes.push(h('div', { class: 'meta' }, h('span', {}, 'Accepted: ', listed(columns.references[i])), ...own.filter(Boolean),
        data.texts[columns.category[i]] && h('span', {}, words(columns.category[i])), h('span', { class: 'mono' }, columns.ids[i])));
    } else {
      nodes.push(h('p', { class: 'meta' }, 'The study has the predictions alone, without texts. '), this.strip(i));
    }
    const evaluation = about.checkpoints.slice(about.n_earlier), right = columns.correct.slice(about.n_earlier).map((row) => row[i]);
    const anyMain = about.estimators.some((e) => e.main);
    const series = about.estimators.map((e, k) => ({ ...e, faded: anyMain && !e.main, values: ready.confidence[k].map((row) => row[i]) }));
    nodes.push(h('h4', {}, 'Confidence in these answers'), confidenceChart(evaluation, series, this.study.looks, right),
      h('details', {}, h('summary', { class: 'note' }, `As numbers, all ${series.length} estimators`), h('div', { class: 'scroll' },
        table(['Estimator', ...evaluation.map((c) => c.label)], series.map((one) => [h('span', {}, sign(this.study.looks[one.estimator]), ' ', one.label), ...one.values.map((v) => (v < 0 ? '–' : short(v / 1000)))])))));
    if (columns.question) {
      nodes.push(h('h4', {}, 'What the checkpoints answered'), h('div', { class: 'scroll' }, h('table', { class: 'answers' },
        h('thead', {}, h('tr', {}, COLUMNS.map((name) => h('th', { scope: 'col' }, name)))),
        h('tbody', {}, about.checkpoints.map((c, k) => this.answerRow(i, k, c, ready, words))))));
    }
    return nodes;
  }

  answerRow(i, k, checkpoint, ready, words) {
    const some = this.columns.clusters[k];
    const start = some ? ready.starts[k][i] : 0, n = some ? some.n[i] : 0;
    const pill = (code) => (code === -2 ? h('span', { class: 'pill waiting' }, 'waits for a person') : code >= 0 ? h('span', { class: `pill ${LABELS[code].replace(' ', '-')}` }, LABELS[code]) : h('span', { class: 'pill' }, 'not judged'));
    const meter = (p) => { const inner = h('i'); inner.style.width = `${p / 10}%`; return [h('span', { class: 'meter', 'aria-hidden': true }, inner), short(p / 1000)]; };
    const head = h('th', { scope: 'row' }, checkpoint.label, checkpoint.role === 'earlier' && h('span', { class: 'note' }, ' earlier'));
    if (!n) return h('tr', {}, head, h('td', { colspan: 3, class: 'note' }, some ? 'no answer' : 'answers are not in the study'));
    const others = Array.from({ length: n - 1 }, (_, m) => start + m + 1);
    const more = some.more[i];
    return h('tr', {}, head,
      h('td', { 'data-head': COLUMNS[1] }, h('b', {}, words(some.answer[start], true)), others.length > 0 && h('details', {}, h('summary', { class: 'note' }, `${others.length + more} other answer${others.length + more > 1 ? 's' : ''}`),
        h('ul', { class: 'others' }, others.map((at) => h('li', {}, words(some.answer[at], true), h('span', {}, short(some.probability[at] / 1000)), some.label[at] !== -1 && pill(some.label[at]))), more > 0 && h('li', {}, `and ${more} more`)))),
      h('td', { 'data-head': COLUMNS[2] }, meter(some.probability[start])), h('td', { 'data-head': COLUMNS[3] }, pill(some.label[start])));
  }
}
