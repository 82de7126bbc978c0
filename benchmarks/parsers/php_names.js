// What the parser of npm's php-parser says of the files of PHP named on stdin: one line of JSON a file,
// {path, definitions: [[kind, qualified name, line]], names: [[byte, name, role]]}. See uses_vs_parsers.py.
const fs = require('fs');
const Engine = require('php-parser');
const parser = new Engine({ parser: { version: '8.2', suppressErrors: false }, ast: { withPositions: true } });
const TYPES = { class: 'class', interface: 'interface', trait: 'trait', enum: 'enum' };

function read(path) {
  const text = fs.readFileSync(path, 'latin1'); // a character is a byte
  const names = new Map();
  const definitions = [];
  const tell = (at, name, role) => {
    if (at >= 0 && text.startsWith(name, at) && !names.has(at)) names.set(at, [name, role]);
  };
  const find = (name, from) => {
    for (let at = text.indexOf(name, from); at >= 0; at = text.indexOf(name, at + 1)) {
      if (!/[\w\x80-\xff]/.test(text[at - 1] ?? '') && !/[\w\x80-\xff]/.test(text[at + name.length] ?? '')) return at;
    }
    return -1;
  };
  const define = (kind, name, at, scope) => {
    if (text[at] === '$') at++;
    const last = name.slice(name.lastIndexOf('\\') + 1);
    const qualified = scope ? `${scope}.${name}` : name;
    tell(at + name.length - last.length, last, 'definition');
    definitions.push([kind, qualified, text.slice(0, at).split('\n').length]);
    return qualified;
  };
  // A name as written: the last word has the role, those before it are of namespaces.
  const named = (node, role) => {
    const written = text.slice(node.loc.start.offset, node.loc.end.offset);
    const words = [...written.matchAll(/(?<![\w\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*/g)];
    words.forEach((word, place) => tell(node.loc.start.offset + word.index, word[0], place === words.length - 1 ? role : 'other'));
  };
  const typed = (type) => {
    if (!type) return;
    if (type.types) type.types.forEach(typed);
    else if (type.kind === 'name') named(type, 'type');
    else if (type.kind === 'typereference') tell(find(type.raw, type.loc.start.offset), type.raw, 'word');
  };
  const functions = new Set(['function', 'method', 'closure', 'arrowfunc']);
  const visit = (node, scope, above) => {
    if (Array.isArray(node)) return node.forEach((one) => visit(one, scope, above));
    if (!node || typeof node.kind !== 'string') return;
    const at = node.loc.start.offset;
    let inner = scope;
    for (const group of node.attrGroups ?? []) {
      for (const one of group.attrs) named({ loc: { start: one.loc.start, end: { offset: one.loc.start.offset + one.name.length } } }, 'type');
      visit(group.attrs.map((one) => one.args), scope, above);
    }
    if (node.kind === 'namespace') {
      const place = text.indexOf(node.name, at);
      const [outer] = [define('namespace', node.name, place, scope)];
      node.name.split('\\').slice(0, -1).reduce((from, word) => (tell(from, word, 'other'), from + word.length + 1), place);
      return visit(node.children, node.withBrackets ? outer : scope, node.withBrackets ? 'namespace' : 'program');
    }
    if (node.kind === 'usegroup') {
      for (const word of text.slice(at, node.loc.end.offset).matchAll(/(?<![\w\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*/g)) tell(at + word.index, word[0], 'import');
      return;
    }
    if (node.kind === 'include') {
      for (const word of text.slice(at, node.loc.end.offset).matchAll(/(?<![\w\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*/g)) tell(at + word.index, word[0], 'import');
      return;
    }
    if (TYPES[node.kind]) {
      if (node.name) inner = define(TYPES[node.kind], node.name.name, find(node.name.name, Math.max(...(node.attrGroups ?? []).map((group) => group.loc.end.offset), node.name.loc.start.offset)), scope);
      [node.extends, node.implements].flat().forEach(typed);
      visit(node.body, inner, node.name ? 'type' : above);
      return;
    }
    if (node.kind === 'function' || node.kind === 'method') {
      const name = node.name.name ?? node.name;
      const from = Math.max(...(node.attrGroups ?? []).map((group) => group.loc.end.offset), at);
      inner = define(name === '__construct' ? 'constructor' : node.kind === 'method' || above === 'type' ? 'method' : 'function', name, find(name, from), scope);
    }
    if (functions.has(node.kind)) {
      typed(node.type);
      for (const one of node.arguments) {
        typed(one.type);
        if (one.flags || one.readonly) define('field', one.name.name, find(one.name.name, one.name.loc.start.offset), scope);
      }
      for (const one of node.uses ?? []) tell(one.loc.start.offset + text.slice(one.loc.start.offset).indexOf('$') + 1, one.name, 'other');
    }
    if (node.kind === 'parameter') tell(node.name.loc.start.offset + 1, node.name.name, 'other');
    if (node.kind === 'enumcase') define('member', node.name.name, find(node.name.name, text.indexOf('case', at) + 4), scope);
    if (node.kind === 'constantstatement' || node.kind === 'classconstant') {
      typed(node.type);
      for (const one of node.constants) {
        const own = define('constant', one.name.name ?? one.name, find(one.name.name ?? one.name, one.loc.start.offset), scope);
        visit(one.value, own, above);
      }
      return;
    }
    if (node.kind === 'propertystatement') {
      for (const one of node.properties) {
        typed(one.type);
        const place = text.indexOf(`$${one.name.name}`, one.loc.start.offset);
        visit(one.value, define('field', one.name.name, place, scope), above);
      }
      return;
    }
    if (node.kind === 'traituse') {
      node.traits.forEach(typed);
      for (const one of node.adaptations ?? []) {
        if (one.trait) named(one.trait, 'other');
        const method = find(one.method.name ?? one.method, one.loc.start.offset);
        tell(method, one.method.name ?? one.method, 'other');
        if (one.as) tell(find(one.as.name ?? one.as, method), one.as.name ?? one.as, 'other');
        (one.instead ?? []).forEach((name) => named(name, 'other'));
      }
      return;
    }
    if (node.kind === 'inline') {
      // Text beside the program is no string: we tell all of it.
      for (const word of text.slice(at, node.loc.end.offset).matchAll(/(?<![\w\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*/g)) tell(at + word.index, word[0], 'other');
    }
    if (node.kind === 'declaredirective') tell(node.key.loc.start.offset, node.key.name, 'other');
    if (node.kind === 'catch') node.what.forEach(typed);
    if (node.kind === 'bin' && node.type === 'instanceof' && node.right.kind === 'name') typed(node.right);
    if (node.kind === 'call' || node.kind === 'new') {
      let called = node.what;
      if (called.kind === 'name') named(called, 'call');
      if (/lookup$/.test(called.kind) && called.offset.kind === 'identifier') {
        tell(called.offset.loc.end.offset - called.offset.name.length, called.offset.name, 'call');
      }
      if (called.kind === 'name' && called.name === 'define' && node.arguments[0]?.kind === 'string') {
        const constant = node.arguments[0];
        if (/^\w+$/.test(constant.value)) define('constant', constant.value, constant.loc.start.offset + 1, scope);
      }
    }
    if (/lookup$/.test(node.kind) && node.offset?.kind === 'identifier') {
      tell(node.offset.loc.end.offset - node.offset.name.length, node.offset.name, 'attribute');
    }
    if (node.kind === 'variable' && typeof node.name === 'string') {
      const place = node.loc.start.offset;
      tell(text[place] === '$' ? place + 1 : place, node.name, 'other');
    }
    if (node.kind === 'name') named(node, 'other');
    if (node.kind === 'namedargument') tell(find(node.name, at), node.name, 'other');
    if (node.kind === 'label' || node.kind === 'goto') {
      const label = node.label?.name ?? node.label ?? node.name?.name ?? node.name;
      if (typeof label === 'string') tell(find(label, at), label, 'other');
    }
    if (node.kind === 'program' || node.kind === 'namespace') above = 'program';
    if (node.kind === 'expressionstatement' && above === 'program' && node.expression.kind === 'assign') {
      const { left, operator } = node.expression;
      if (operator === '=' && left.kind === 'variable' && typeof left.name === 'string') {
        inner = define('variable', left.name, left.loc.start.offset, scope);
      }
    } else if (above === 'program' && node.kind !== 'program') above = 'statement';
    for (const [key, value] of Object.entries(node)) {
      if (value && typeof value === 'object' && key !== 'loc' && key !== 'attrGroups') visit(value, inner, above);
    }
  };
  visit(parser.parseCode(text, path), '', 'program');
  return { path, definitions, names: [...names].filter(([, [, role]]) => role !== 'word').map(([at, [name, role]]) => [at, name, role]) };
}

for (const path of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  try {
    process.stdout.write(JSON.stringify(read(path)) + '\n');
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) process.stderr.write(`${path}: ${problem.stack}\n`);
  }
}
