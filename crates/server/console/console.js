// The console: asks the node once a second what it does, and draws what has changed since.
// What comes from the node is only ever put into the page as text.
'use strict';

const KEPT = 300;
const $ = (name) => document.getElementById(name);
const svg = (name, attributes) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
};
const make = (name, attributes = {}, ...inside) => {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...inside);
  return made;
};
const cell = (text, kind) => make('td', kind ? { class: kind } : {}, text);

function short(value, unit = '') {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const steps = ['', 'k', 'M', 'G', 'T'];
  let step = 0;
  while (value >= 9999.5 && step < 4) { value /= 1000; step += 1; }
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${steps[step] || unit ? ' ' : ''}${steps[step]}${unit}`;
}
const bytes = (value) => {
  const steps = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let step = 0;
  while (value >= 1024 && step < 4) { value /= 1024; step += 1; }
  return `${value.toFixed(value >= 100 || step === 0 ? 0 : 1)} ${steps[step]}`;
};

// How often something came in each bucket between two answers; `null` of a node that was started anew.
function between(now, before) {
  if (!now) return null;
  if (!before) return now;
  const counts = now.map((count, i) => count - before[i]);
  return counts.some((count) => count < 0) ? now : counts;
}
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);

// The value below which `share` of all lie, evenly spread within a bucket.
function quantile(counts, ends, share) {
  const all = sum(counts);
  if (!all) return null;
  let left = share * all;
  for (let i = 0; i < counts.length; i += 1) {
    if (left <= counts[i] && counts[i] > 0) {
      const low = i ? ends[i - 1] : 0;
      const high = i < ends.length ? ends[i] : 2 * low;
      return low + (high - low) * left / counts[i];
    }
    left -= counts[i];
  }
  return ends[ends.length - 1];
}

const series = { p50: [], p99: [], searches: [], writes: [] };
let before = null;

function note(name, value) {
  series[name].push(value);
  if (series[name].length > KEPT) series[name].shift();
}

function draw(chart, lines, unit) {
  const [width, height, left, below] = [600, 176, 58, 16];
  const values = lines.flat().filter((value) => value !== null);
  const top = Math.max(...values, unit === 'ms' ? 0.1 : 1) * 1.1;
  const x = (i) => left + (width - left) * i / (KEPT - 1);
  const y = (value) => (height - below) * (1 - value / top);
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    const at = y(top * share / 1.1);
    parts.push(svg('line', { x1: left, x2: width, y1: at, y2: at }));
    const label = svg('text', { x: left - 4, y: Math.max(at, 10), 'text-anchor': 'end' });
    label.textContent = short(top * share / 1.1) + (share === 1 && unit ? ` ${unit}` : '');
    parts.push(label);
  }
  const label = svg('text', { x: width, y: height - 3, 'text-anchor': 'end' });
  label.textContent = 'the last 5 minutes';
  parts.push(label);
  lines.forEach((line, at) => {
    let path = '';
    line.forEach((value, i) => {
      if (value === null) return;
      const begins = i === 0 || line[i - 1] === null;
      const place = `${x(i + KEPT - line.length).toFixed(1)} ${y(value).toFixed(1)}`;
      path += begins ? `M${place}h.1` : `L${place}`;
    });
    parts.push(svg('path', { d: path, class: at ? 'b' : 'a' }));
  });
  chart.setAttribute('viewBox', `0 0 ${width} ${height}`);
  chart.replaceChildren(...parts);
}

function tiles(values) {
  $('tiles').replaceChildren(...values.map(([what, value]) => make('div', {}, make('b', {}, value), what)));
}

function chiplets(now, seconds) {
  const all = new Map();
  now.workers.forEach((worker, i) => {
    const old = before && before.workers[i];
    const rate = (name) => (old ? Math.max(worker[name] - old[name], 0) / seconds : 0);
    const of = all.get(worker.chiplet) || { cores: [], read: 0, near: 0, across: 0, tables: [] };
    of.cores.push({ busy: Math.min(rate('busy_ns') / 1e9, 1), queued: worker.queued, tasks: rate('tasks'), worker: i });
    of.read += rate('bytes');
    of.near += rate('stolen_near');
    of.across += rate('stolen_across');
    all.set(worker.chiplet, of);
  });
  for (const index of now.indices) {
    for (const home of index.homes) {
      const of = all.get(home.chiplet);
      if (of) of.tables.push({ name: index.name, held: home.held, read: home.read });
    }
  }
  $('chiplets').replaceChildren(...[...all].map(([chiplet, of]) => {
    of.tables.sort((a, b) => b.read - a.read || b.held - a.held);
    const cores = of.cores.map(({ busy, queued, tasks, worker }) => {
      const said = `worker ${worker}: ${Math.round(100 * busy)} % busy, ${short(tasks)} tasks/s, ${queued} queued`;
      const core = make('i', { title: said, role: 'img', 'aria-label': said });
      core.style.backgroundSize = `100% ${Math.round(100 * busy)}%`;
      return core;
    });
    const tables = of.tables.slice(0, 50).map((table) => make(
      'li', {},
      make('span', { title: table.name }, table.name),
      make('span', { class: 'quiet' }, `${bytes(table.held)}${now.mapped ? `, ${bytes(table.read)}/s` : ''}`),
    ));
    if (of.tables.length > 50) tables.push(make('li', { class: 'quiet' }, `and ${of.tables.length - 50} more`));
    return make(
      'div', { class: 'chiplet' },
      make('h3', {}, `chiplet ${chiplet}`, make('span', { class: 'quiet' }, `${bytes(of.read)}/s`)),
      make('div', { class: 'cores' }, ...cores),
      make('div', { class: 'quiet' }, `stolen: ${short(of.near)}/s here, ${short(of.across)}/s from others`),
      make('ul', {}, ...tables),
    );
  }));
}

const SHADES = ['#1565c0', '#c2571a', '#1b7f4b', '#8e44ad', '#b3261e', '#6d6d00', '#00838f', '#5d4037'];
function memory(now) {
  const { limit, predicted, resident, waiting } = now.memory;
  const all = sum(Object.values(predicted));
  const most = limit || Math.max(all, resident || 0, 1);
  const used = Object.entries(predicted).filter(([, held]) => held > 0);
  const bar = make('div', { class: 'bar', role: 'img', 'aria-label': `${bytes(all)} of ${limit ? bytes(limit) : 'no limit'}` });
  const key = make('p', { class: 'quiet' });
  used.forEach(([purpose, held], i) => {
    const part = make('i', { title: `${purpose}: ${bytes(held)}` });
    part.style.width = `${100 * held / most}%`;
    part.style.background = SHADES[i % SHADES.length];
    bar.append(part);
    const mark = make('i', { class: 'mark' });
    mark.style.cssText = `display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .9em;background:${SHADES[i % SHADES.length]}`;
    key.append(mark, `${purpose} ${bytes(held)}`);
  });
  const said = `predicted ${bytes(all)} of ${limit ? bytes(limit) : 'no limit'}`
    + (resident ? `; the process has ${bytes(resident)}, pages of files among it` : '')
    + (waiting ? `; ${waiting} wait for memory` : '');
  $('memory').replaceChildren(bar, make('p', { class: 'quiet' }, said), key);
}

function indices(now, seconds) {
  const old = new Map(before ? before.indices.map((index) => [index.name, index]) : []);
  $('indices').tBodies[0].replaceChildren(...now.indices.map((index) => {
    const was = old.get(index.name);
    const counts = index.searches && between(index.searches, was && was.searches);
    const p99 = counts && before ? quantile(counts, now.ends_us, 0.99) : null;
    const recall = index.recall === null ? '–' : index.recall.toFixed(3);
    const row = make(
      'tr', {}, cell(index.name), cell(index.state, index.state === 'damaged' ? 'bad' : 'quiet'),
      cell(short(index.documents), 'number'), cell(short(index.deleted), 'number'),
      cell(short(index.segments), 'number'), cell(index.bytes === null ? '–' : bytes(index.bytes), 'number'),
      cell(short(counts && before ? sum(counts) / seconds : 0), 'number'),
      cell(p99 === null ? '–' : short(p99 / 1000), 'number'), cell(recall, 'number'), cell(short(index.merges), 'number'),
    );
    if (index.why) row.title = index.why;
    return row;
  }));
  if (now.more) {
    $('indices').tBodies[0].append(make('tr', {}, make('td', { colspan: 10, class: 'quiet' }, `and ${now.more} more`)));
  }
}

function show(now) {
  // A node that was started anew counts from the start.
  if (before && now.uptime_ms < before.uptime_ms) before = null;
  const seconds = before ? Math.max((now.uptime_ms - before.uptime_ms) / 1000, 0.001) : 1;
  $('who').textContent = `${now.cluster} · ${now.name} · ${now.version} · up ${uptime(now.uptime_ms)}`;
  const rate = (work) => (before ? sum(between(now.work[work], before.work[work])) / seconds : 0);
  const searched = before ? between(now.work.search, before.work.search) : [];
  const ms = (share) => { const us = quantile(searched, now.ends_us, share); return us === null ? null : us / 1000; };
  if (before) {
    note('p50', ms(0.5));
    note('p99', ms(0.99));
    note('searches', rate('search'));
    note('writes', rate('write'));
  }
  const stolen = (name) => sum(now.workers.map((worker) => worker[name]));
  const last = (name) => series[name][series[name].length - 1];
  tiles([
    ['searches a second', short(rate('search'))],
    ['P50 ms', short(last('p50'))],
    ['P99 ms', short(last('p99'))],
    ['writes a second', short(rate('write'))],
    ['queued', short(sum(now.workers.map((worker) => worker.queued)))],
    ['stolen from other chiplets', short(stolen('stolen_across'))],
    ['refused', short(now.refused)],
  ]);
  draw($('latency'), [series.p50, series.p99], 'ms');
  draw($('throughput'), [series.searches, series.writes], '');
  chiplets(now, seconds);
  memory(now);
  indices(now, seconds);
  choices(now.indices.filter((index) => index.state !== 'damaged').map((index) => index.name));
  before = now;
}

function uptime(ms) {
  const minutes = Math.floor(ms / 60000);
  if (minutes < 1) return `${Math.floor(ms / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

async function ask(path, body) {
  const how = body === undefined ? {} : {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  };
  const answer = await fetch(path, how);
  const told = await answer.json();
  if (!answer.ok) {
    const error = told.error || {};
    const cause = (error.root_cause || [])[0] || error;
    throw new Error(typeof error === 'string' ? error : cause.reason || answer.statusText);
  }
  return told;
}

async function live() {
  if (!document.hidden) {
    try {
      show(await ask('/_lanewise/live'));
      $('state').replaceChildren();
    } catch (error) {
      $('state').replaceChildren(make('span', { class: 'bad' }, `no answer: ${error.message}`));
    }
  }
  setTimeout(live, 1000);
}

// Searches.
const form = $('search');
let known = '';
function choices(names) {
  if (names.join('/') === known) return;
  known = names.join('/');
  const chosen = form.index.value;
  form.index.replaceChildren(...names.map((name) => make('option', {}, name)));
  if (names.includes(chosen)) form.index.value = chosen;
  fields().then(linked);
}

// A search may stand in the page's address: #index=…&vector=…&words=…&filter=…&k=…; it is run once.
async function linked() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.get('index') || ![...form.index.options].some((option) => option.value === asked.get('index'))) return;
  history.replaceState(null, '', location.pathname);
  form.index.value = asked.get('index');
  await fields();
  for (const name of ['field', 'k', 'vector', 'words', 'filter']) {
    if (asked.has(name)) form[name].value = asked.get(name);
  }
  form.requestSubmit();
}

function vectors(properties, before = '') {
  return Object.entries(properties || {}).flatMap(([name, field]) => (
    field.type === 'knn_vector' ? [before + name] : vectors(field.properties, `${before}${name}.`)
  ));
}

async function fields() {
  const index = form.index.value;
  if (!index) return;
  const told = await ask(`/${encodeURIComponent(index)}/_mapping`).catch(() => ({}));
  const names = Object.values(told).flatMap((one) => vectors(one.mappings.properties));
  form.field.replaceChildren(...names.map((name) => make('option', {}, name)));
}
form.index.addEventListener('change', fields);

async function vector(index, field, text) {
  if (/^[[\]\s\d.,eE+-]+$/.test(text) && /[,\s]/.test(text.trim())) {
    return text.replace(/[[\]]/g, ' ').split(/[\s,]+/).filter(Boolean).map(Number);
  }
  const id = encodeURIComponent(text.trim());
  const told = await ask(`/${encodeURIComponent(index)}/_doc/${id}?_source_includes=${encodeURIComponent(field)}`);
  const found = field.split('.').reduce((of, name) => of && of[name], told._source);
  if (!found) throw new Error(`document ${text.trim()} has no ${field}`);
  return found;
}

async function query() {
  const [index, field, k] = [form.index.value, form.field.value, Number(form.k.value)];
  const filter = form.filter.value.trim() ? JSON.parse(form.filter.value) : undefined;
  const should = [];
  if (form.vector.value.trim()) {
    const knn = { vector: await vector(index, field, form.vector.value), k };
    should.push({ knn: { [field]: filter ? { ...knn, filter } : knn } });
  }
  const words = form.words.value.trim();
  if (words) {
    const [, name, text] = words.match(/^([\w.]+):\s*(.+)$/s) || [];
    if (!name) throw new Error('words: say the field, as in title: red shoes');
    should.push({ match: { [name]: text } });
  }
  if (should.length === 1 && !(words && filter)) return should[0];
  const bool = should.length ? { should, minimum_should_match: 1 } : { must: [{ match_all: {} }] };
  return { bool: filter ? { ...bool, filter: [filter] } : bool };
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  $('found').textContent = '…';
  $('hits').tBodies[0].replaceChildren();
  try {
    const body = { size: Number(form.k.value), query: await query() };
    const excludes = [...form.field.options].map((option) => option.value);
    if (excludes.length) body._source = { excludes };
    const told = await ask(`/${encodeURIComponent(form.index.value)}/_search`, body);
    const { total, hits } = told.hits;
    const link = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, '', `${location.pathname}#${link}`);
    $('found').textContent = `${hits.length} of ${total.relation === 'gte' ? 'at least ' : ''}${total.value} in ${told.took} ms`;
    $('hits').tBodies[0].replaceChildren(...hits.map((hit) => make(
      'tr', {}, cell(hit._id), cell(hit._score === null ? '–' : hit._score.toPrecision(6), 'number'),
      make('td', {}, make('pre', {}, JSON.stringify(hit._source || {}))),
    )));
  } catch (error) {
    $('found').replaceChildren(make('span', { class: 'bad' }, error.message));
  }
});

live();
