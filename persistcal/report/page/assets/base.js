// What the other scripts share. Text enters the page as text alone: nothing here parses HTML.

const SVG = 'http://www.w3.org/2000/svg';
const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

async function unpack(id) {
  const text = byId(id).textContent;
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

const count = (n) => n.toLocaleString('en-US');
const percent = (share) => `${Math.round(100 * share)} %`;
function short(value) {
  if (value === null || value === undefined) return '–';
  const text = Math.abs(value).toFixed(3);
  const digits = text === '1.000' ? text : text.replace(/^0/, '');
  return value < 0 && Number(text) ? `−${digits}` : digits;
}

// One tooltip for all that has a data-tip.
const tip = byId('tip');
function showTip(target, x, y) {
  tip.textContent = target.getAttribute('data-tip');
  tip.classList.add('on');
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}
document.addEventListener('pointermove', (event) => {
  const target = event.target.closest && event.target.closest('[data-tip]');
  if (target) showTip(target, event.clientX, event.clientY);
  else tip.classList.remove('on');
});
document.addEventListener('scroll', () => tip.classList.remove('on'), { passive: true, capture: true });

// What is wider than its box fades at the edge and says so, until it is scrolled to its end.
function markCut(node) {
  const cut = node.scrollWidth - node.clientWidth - node.scrollLeft > 1;
  node.classList.toggle('cut', cut);
  if (cut && !node.nextElementSibling?.matches('.more')) node.after(h('p', { class: 'note more' }, 'scroll for more →'));
}
const boxes = new ResizeObserver((entries) => entries.forEach((entry) => markCut(entry.target)));
document.addEventListener('scroll', (event) => event.target.matches?.('.scroll') && markCut(event.target), { passive: true, capture: true });

// Draws a chart at the width it has, and again when that changes.
function chart(draw, label) {
  const box = h('div', { class: 'chart' });
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(box.clientWidth);
    if (!now || now === width) return;
    width = now;
    const picture = draw(width);
    picture.setAttribute('role', 'img');
    picture.setAttribute('aria-label', label);
    box.replaceChildren(picture);
  }).observe(box);
  return box;
}

const canvas = (width, height, ...children) => s('svg', { viewBox: `0 0 ${width} ${height}`, height, width }, ...children);
const scale = (from, to, start, end) => (value) => start + ((value - from) / (to - from)) * (end - start);
const text = (x, y, content, attributes) => s('text', { x, y, ...attributes }, String(content));
const line = (x1, y1, x2, y2, kind) => s('line', { x1, y1, x2, y2, class: kind });
const path = (points) => 'M' + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L');
const glyph = (look, x, y, size = 14) => s('use', { href: `#m-${look.marker}`, x: x - size / 2, y: y - size / 2, width: size, height: size, class: `mark${look.variant ? ' hollow' : ''}` });
const sign = (look) => s('svg', { class: `glyph ${look.class}`, viewBox: '-8 -8 16 16', 'aria-hidden': true }, s('use', { href: `#m-${look.marker}`, x: -8, y: -8, width: 16, height: 16, class: `mark${look.variant ? ' hollow' : ''}` }));

function chips(options, chosen, choose, label) {
  const group = h('div', { class: 'chips', role: 'group', 'aria-label': label });
  options.forEach(([value, name]) => group.append(h('button', {
    type: 'button', 'aria-pressed': String(value === chosen),
    onclick: (event) => {
      for (const other of group.children) other.setAttribute('aria-pressed', String(other === event.currentTarget));
      choose(value);
    },
  }, name)));
  return group;
}
// Charts above may still grow in the next frame: the place is sought after it.
const goTo = (node) => requestAnimationFrame(() => requestAnimationFrame(() => node.scrollIntoView({ block: 'start', behavior: 'instant' })));
const options = (pairs) => pairs.map(([value, name]) => h('option', { value }, name));

function table(head, rows, attributes) {
  return h('table', attributes || {},
    h('thead', {}, h('tr', {}, head.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, i) => (i ? h('td', {}, cell) : h('th', { scope: 'row' }, cell)))))));
}

// The numbers of a picture, for those who cannot see it; shown to no one else.
const numbers = (caption, head, rows) => {
  const made = table(head, rows, {});
  made.prepend(h('caption', {}, caption));
  return h('div', { class: 'vh' }, made);
};
