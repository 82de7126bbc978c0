// What Go's own parser says of the files named on stdin: one line of JSON a file,
// {path, definitions: [[kind, qualified name, line]], names: [[byte, name, role]]}. See uses_vs_parsers.py.
package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
)

type file struct {
	Path        string  `json:"path"`
	Definitions [][]any `json:"definitions"`
	Names       [][]any `json:"names"`
}

type reader struct {
	set   *token.FileSet
	out   *file
	roles map[*ast.Ident]string
	text  []byte
}

func (r *reader) define(name *ast.Ident, kind, scope string) string {
	qualified := name.Name
	if scope != "" {
		qualified = scope + "." + name.Name
	}
	if name.Name == "_" && kind != "function" && kind != "method" {
		return qualified
	}
	r.roles[name] = "definition"
	r.out.Definitions = append(r.out.Definitions, []any{kind, qualified, r.set.Position(name.Pos()).Line})
	return qualified
}

func receiver(list *ast.FieldList) string {
	found := ""
	ast.Inspect(list.List[0].Type, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok && found == "" {
			found = name.Name
		}
		return found == ""
	})
	return found
}

// typed marks a type: its names are told as types, those of packages before a dot as others.
func (r *reader) typed(node ast.Expr) {
	switch t := node.(type) {
	case *ast.Ident:
		r.roles[t] = "type"
	case *ast.SelectorExpr:
		r.roles[t.Sel] = "type"
	case *ast.StarExpr:
		r.typed(t.X)
	case *ast.ParenExpr:
		r.typed(t.X)
	case *ast.ArrayType:
		r.typed(t.Elt)
	case *ast.MapType:
		r.typed(t.Key)
		r.typed(t.Value)
	case *ast.ChanType:
		r.typed(t.Value)
	case *ast.Ellipsis:
		if t.Elt != nil {
			r.typed(t.Elt)
		}
	case *ast.IndexExpr:
		r.typed(t.X)
		r.typed(t.Index)
	case *ast.IndexListExpr:
		r.typed(t.X)
		for _, one := range t.Indices {
			r.typed(one)
		}
	case *ast.UnaryExpr:
		r.typed(t.X)
	case *ast.BinaryExpr:
		r.typed(t.X)
		r.typed(t.Y)
	}
}

func (r *reader) called(node ast.Expr) {
	switch t := node.(type) {
	case *ast.Ident:
		r.roles[t] = "call"
	case *ast.SelectorExpr:
		r.roles[t.Sel] = "call"
	case *ast.IndexExpr:
		r.called(t.X)
	case *ast.IndexListExpr:
		r.called(t.X)
	case *ast.ParenExpr:
		if inner, ok := t.X.(*ast.StarExpr); ok {
			r.typed(inner)
		} else {
			r.called(t.X)
		}
	case *ast.ArrayType, *ast.MapType, *ast.ChanType:
		r.typed(t)
	}
}

func (r *reader) walk(node ast.Node, scope string, top bool) {
	ast.Inspect(node, func(one ast.Node) bool {
		switch t := one.(type) {
		case *ast.FuncDecl:
			kind, inner := "function", scope
			if t.Recv != nil {
				kind, inner = "method", receiver(t.Recv)
				r.walk(t.Recv, scope, false)
			}
			inner = r.define(t.Name, kind, inner)
			r.walk(t.Type, inner, false)
			if t.Body != nil {
				r.walk(t.Body, inner, false)
			}
			return false
		case *ast.TypeSpec:
			kind := "type"
			if _, ok := t.Type.(*ast.StructType); ok && !t.Assign.IsValid() {
				kind = "struct"
			}
			if _, ok := t.Type.(*ast.InterfaceType); ok && !t.Assign.IsValid() {
				kind = "interface"
			}
			inner := r.define(t.Name, kind, scope)
			r.typed(t.Type)
			if t.TypeParams != nil {
				r.walk(t.TypeParams, inner, false)
			}
			r.walk(t.Type, inner, false)
			return false
		case *ast.GenDecl:
			if top && (t.Tok == token.CONST || t.Tok == token.VAR) {
				for _, spec := range t.Specs {
					value := spec.(*ast.ValueSpec)
					inner := scope
					for _, name := range value.Names {
						inner = r.define(name, map[token.Token]string{token.CONST: "constant", token.VAR: "variable"}[t.Tok], scope)
					}
					if value.Type != nil {
						r.typed(value.Type)
						r.walk(value.Type, inner, false)
					}
					for _, more := range value.Values {
						r.walk(more, inner, false)
					}
				}
				return false
			}
		case *ast.ValueSpec:
			if t.Type != nil {
				r.typed(t.Type)
			}
		case *ast.StructType:
			for _, field := range t.Fields.List {
				r.typed(field.Type)
				inner := scope
				for _, name := range field.Names {
					inner = r.define(name, "field", scope)
				}
				r.walk(field.Type, inner, false)
			}
			return false
		case *ast.InterfaceType:
			for _, field := range t.Methods.List {
				r.typed(field.Type)
				inner := scope
				for _, name := range field.Names {
					inner = r.define(name, "method", scope)
				}
				r.walk(field.Type, inner, false)
			}
			return false
		case *ast.Field:
			r.typed(t.Type)
		case *ast.CompositeLit:
			if t.Type != nil {
				r.typed(t.Type)
			}
		case *ast.TypeAssertExpr:
			if t.Type != nil {
				r.typed(t.Type)
			}
		case *ast.CallExpr:
			r.called(t.Fun)
			if name, ok := t.Fun.(*ast.Ident); ok && (name.Name == "make" || name.Name == "new") && len(t.Args) > 0 {
				r.typed(t.Args[0])
			}
		case *ast.TypeSwitchStmt:
			for _, clause := range t.Body.List {
				for _, one := range clause.(*ast.CaseClause).List {
					r.typed(one)
				}
			}
		case *ast.SelectorExpr:
			if r.roles[t.Sel] == "" {
				r.roles[t.Sel] = "attribute"
			}
		case *ast.ImportSpec:
			if t.Name != nil && t.Name.Name != "." {
				r.roles[t.Name] = "import"
			}
			start := r.set.Position(t.Path.Pos()).Offset
			for _, at := range words.FindAllStringIndex(t.Path.Value, -1) {
				r.out.Names = append(r.out.Names, []any{start + at[0], t.Path.Value[at[0]:at[1]], "import"})
			}
		}
		return true
	})
}

var words = regexp.MustCompile(`[\pL_][\pL_\pN]*`)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	for lines.Scan() {
		path := lines.Text()
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			continue
		}
		r := &reader{set: set, out: &file{Path: path, Definitions: [][]any{}, Names: [][]any{}}, roles: map[*ast.Ident]string{}}
		r.define(tree.Name, "module", "")
		for _, decl := range tree.Decls {
			r.walk(decl, "", true)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			if name, ok := node.(*ast.Ident); ok && name.Name != "." {
				role := r.roles[name]
				if role == "" {
					role = "other"
				}
				r.out.Names = append(r.out.Names, []any{set.Position(name.Pos()).Offset, name.Name, role})
			}
			return true
		})
		line, _ := json.Marshal(r.out)
		writer.Write(append(line, '\n'))
	}
}
