// Every identifier of the files named on stdin, as TypeScript's own parser sees it: one line of JSON a file,
// {path, names: [[line, name, role]]}. Roles: definition (what an outline shows), local, import, call, type, attribute, other.
const fs = require('fs');
const ts = require('typescript');
const S = ts.SyntaxKind;
const FIELD_MARKS = new Set([S.PublicKeyword, S.PrivateKeyword, S.ProtectedKeyword, S.ReadonlyKeyword, S.OverrideKeyword]);
const ALWAYS_DEFINED = new Set([
  S.FunctionDeclaration, S.FunctionExpression, S.ClassDeclaration, S.ClassExpression, S.InterfaceDeclaration, S.TypeAliasDeclaration,
  S.EnumDeclaration, S.EnumMember, S.ModuleDeclaration, S.MethodDeclaration, S.MethodSignature, S.PropertyDeclaration, S.GetAccessor, S.SetAccessor,
]);

const isFunction = (node) => node !== undefined && (node.kind === S.ArrowFunction || node.kind === S.FunctionExpression);

function isRequire(node) {
  while (node && node.kind === S.PropertyAccessExpression) node = node.expression;
  return node !== undefined && node.kind === S.CallExpression && node.expression.getText() === 'require';
}

// A module's name is told as an import, word by word.
function isModule(string) {
  const above = string.parent;
  if (ts.isImportDeclaration(above) || ts.isExportDeclaration(above) || ts.isExternalModuleReference(above)) return true;
  return ts.isCallExpression(above) && above.arguments[0] === string && /^(require|import)$/.test(above.expression.getText());
}

function declared(name) {
  const node = name.parent;
  if (ALWAYS_DEFINED.has(node.kind)) return 'definition';
  if (node.kind === S.PropertySignature) {
    const around = node.parent;
    return around.kind === S.InterfaceDeclaration || around.parent.kind === S.TypeAliasDeclaration ? 'definition' : 'attribute';
  }
  if (node.kind === S.Parameter) return node.modifiers?.some((mark) => FIELD_MARKS.has(mark.kind)) ? 'definition' : 'local';
  if (node.kind === S.VariableDeclaration || node.kind === S.BindingElement) {
    let around = node;
    while (around.kind === S.BindingElement || ts.isBindingName(around)) around = around.parent;
    if (around.kind !== S.VariableDeclaration) return 'local';
    if (isRequire(around.initializer)) return 'import';
    if (node === around && (isFunction(node.initializer) || node.initializer?.kind === S.ClassExpression)) return 'definition';
    const block = around.parent.parent?.parent;
    return block && (block.kind === S.SourceFile || block.kind === S.ModuleBlock) ? 'definition' : 'local';
  }
  if (node.kind === S.PropertyAssignment) return isFunction(node.initializer) ? 'definition' : 'attribute';
  if (node.kind === S.JsxAttribute) return 'attribute';
  return node.kind === S.TypeParameter || node.kind === S.NamedTupleMember ? 'local' : null;
}

function isCalled(name) {
  let node = name;
  if (node.parent.kind === S.PropertyAccessExpression && node.parent.name === node) node = node.parent;
  if (node.parent.kind === S.NonNullExpression) node = node.parent;
  const above = node.parent;
  if (above.kind === S.CallExpression || above.kind === S.NewExpression) return above.expression === node;
  return above.kind === S.TaggedTemplateExpression && above.tag === node;
}

function role(name) {
  for (let node = name.parent; node && !ts.isBlock(node); node = node.parent) {
    if (ts.isImportDeclaration(node) || ts.isImportEqualsDeclaration(node) || (ts.isExportDeclaration(node) && node.moduleSpecifier)) return 'import';
    if (ts.isStatement(node)) break;
  }
  const parent = name.parent;
  if (parent.name === name && parent.kind !== S.PropertyAccessExpression) {
    const found = declared(name);
    if (found) return found;
  }
  if (isCalled(name)) return 'call';
  if (parent.kind === S.PropertyAccessExpression && parent.name === name) {
    if (parent.parent.kind === S.ExpressionWithTypeArguments) return 'type';
    if (parent.parent.tagName === parent) return ts.isJsxClosingElement(parent.parent) ? 'other' : 'call';
    const assigned = parent.parent.kind === S.BinaryExpression && parent.parent.left === parent && parent.parent.operatorToken.kind === S.EqualsToken;
    return assigned && isFunction(parent.parent.right) ? 'definition' : 'attribute';
  }
  if (parent.kind === S.TypeReference && name.text !== 'const') return 'type';
  return 'other';
}

for (const path of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const script = /\.tsx$/.test(path) ? ts.ScriptKind.TSX : /ts$/.test(path) ? ts.ScriptKind.TS : ts.ScriptKind.JSX;
  const file = ts.createSourceFile(path, fs.readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true, script);
  const names = [];
  const visit = (node) => {
    if ((ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) && node.getWidth(file) > 0) {
      const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
      names.push([line, node.getText(file).replace('#', ''), role(node)]);
    }
    if (ts.isStringLiteralLike(node) && isModule(node)) {
      const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
      for (const word of node.text.match(/\w+/g) ?? []) names.push([line, word, 'import']);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  process.stdout.write(JSON.stringify({ path, names }) + '\n');
}
