package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// floors says on which floor each package stands (ARCHITECTURE.md, "Floors"). A package imports only floors strictly below its own.
// The two staircases above the trunk never meet below cmd: sim and host name them.
var floors = map[string]struct {
	floor int
	stair string // "": the trunk or above both
}{
	"seq": {0, ""}, "clock": {0, ""},
	"trace": {1, ""}, "wire": {1, ""}, "congestion": {1, ""}, "schedule": {1, ""}, "link": {1, ""}, "buffer": {1, ""},
	"tcp": {2, ""}, "middlebox": {2, ""},
	"mptcp":  {3, ""},
	"netsim": {4, "sim"}, "device": {4, "host"}, "device/devicetest": {5, "host"},
	"experiment": {5, "sim"}, "emulator": {5, "host"}, "host": {6, "host"},
	"paper": {7, "sim"}, "": {7, "host"},
	"emulator/testbed": {6, "host"},
	"experiment/real":  {8, ""},
	"cmd/braid":        {9, ""}, "cmd/braid/demo": {8, ""},
}

// trunk are the packages that compute only.
var trunk = []string{"seq", "clock", "trace", "wire", "congestion", "schedule", "link", "buffer", "middlebox", "tcp", "mptcp"}

type file struct {
	pkg  string // folder relative to the root
	path string // relative to the root
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func parseAll(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if pkg == "." {
			pkg = ""
		}
		files = append(files, file{pkg, filepath.ToSlash(rel), strings.HasSuffix(path, "_test.go"), f, fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d Go files: looking in the wrong place", len(files))
	}
	return files
}

func imports(f *ast.File) []string {
	var paths []string
	for _, im := range f.Imports {
		p, _ := strconv.Unquote(im.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// inProject returns the folder of an import of this module.
func inProject(path string) (string, bool) {
	if path == "braid" {
		return "", true
	}
	return strings.CutPrefix(path, "braid/")
}

func TestFloors(t *testing.T) {
	for _, f := range parseAll(t) {
		if strings.HasPrefix(f.pkg, "internal/") || f.test {
			continue
		}
		own, known := floors[f.pkg]
		if !known {
			t.Errorf("%s: folder %q has no floor; give it one in this test and in ARCHITECTURE.md", f.path, f.pkg)
			continue
		}
		for _, im := range imports(f.ast) {
			pkg, ok := inProject(im)
			if !ok || strings.HasPrefix(pkg, "internal/") {
				continue
			}
			other, known := floors[pkg]
			if !known {
				t.Errorf("%s imports %s, which has no floor", f.path, im)
				continue
			}
			if other.floor >= own.floor {
				t.Errorf("%s (floor %d) imports %s (floor %d): only floors strictly below", f.path, own.floor, im, other.floor)
			}
			if own.stair != "" && other.stair != "" && own.stair != other.stair {
				t.Errorf("%s (%s) imports %s (%s): the staircases meet only in cmd and experiment/real", f.path, own.stair, im, other.stair)
			}
		}
	}
}

// bannedImports would let the trunk reach outside.
var bannedImports = []string{"os", "net", "sync", "sync/atomic", "syscall", "io/ioutil", "log", "crypto/rand", "runtime", "unsafe", "math/rand", "os/signal", "context"}

// clockReaders are the names of package time that read or wait on the machine's clock.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestTrunkIsACalculator(t *testing.T) {
	for _, f := range parseAll(t) {
		if f.test || !slices.Contains(trunk, f.pkg) {
			continue
		}
		for _, im := range imports(f.ast) {
			if im == "net" && onlyErrClosed(f.ast) {
				continue // the caller's sentinel, not a socket
			}
			if slices.Contains(bannedImports, im) || strings.HasPrefix(im, "golang.org/x/sys") {
				t.Errorf("%s imports %s: the trunk computes and reaches nothing", f.path, im)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n == nil {
				return false
			}
			pos := func() string { return f.path + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line) }
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in the trunk", pos())
			case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: a channel in the trunk", pos())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					if x.Name == "time" && slices.Contains(clockReaders, n.Sel.Name) {
						t.Errorf("%s: time.%s: now is an argument", pos(), n.Sel.Name)
					}
					if x.Name == "rand" && !slices.Contains([]string{"Rand", "New", "NewPCG", "NewChaCha8", "PCG", "ChaCha8", "Source"}, n.Sel.Name) {
						t.Errorf("%s: rand.%s: randomness comes from a stream that was given", pos(), n.Sel.Name)
					}
				}
			}
			return true
		})
	}
}

// onlyErrClosed reports whether all that a file uses of package net is net.ErrClosed.
func onlyErrClosed(f *ast.File) bool {
	only := true
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "net" && s.Sel.Name != "ErrClosed" {
				only = false
			}
		}
		return true
	})
	return only
}

// TestTrunkHasNoGlobalState finds package-level variables of the trunk that something assigns to.
func TestTrunkHasNoGlobalState(t *testing.T) {
	globals := map[string]map[string]bool{}
	files := parseAll(t)
	for _, f := range files {
		if f.test || !slices.Contains(trunk, f.pkg) {
			continue
		}
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, sp := range g.Specs {
				for _, name := range sp.(*ast.ValueSpec).Names {
					if globals[f.pkg] == nil {
						globals[f.pkg] = map[string]bool{}
					}
					globals[f.pkg][name.Name] = true
				}
			}
		}
	}
	for _, f := range files {
		if f.test || globals[f.pkg] == nil {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			local := map[string]bool{}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field:
					for _, name := range n.Names {
						local[name.Name] = true
					}
				case *ast.AssignStmt:
					for _, l := range n.Lhs {
						id := base(l)
						if id == nil {
							continue
						}
						if n.Tok == token.DEFINE {
							local[id.Name] = true
						} else if globals[f.pkg][id.Name] && !local[id.Name] {
							t.Errorf("%s:%d: assigns to the package variable %s", f.path, f.fset.Position(n.Pos()).Line, id.Name)
						}
					}
				}
				return true
			})
		}
	}
}

// base returns the identifier that an assignment changes: x of x, x[i], x.f; nil if it goes through something else.
func base(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.SelectorExpr:
		return base(e.X)
	}
	return nil
}

func TestOnePackageCommentEach(t *testing.T) {
	comments := map[string][]string{}
	pkgs := map[string]bool{}
	for _, f := range parseAll(t) {
		if f.test {
			continue
		}
		pkgs[f.pkg] = true
		if f.ast.Doc != nil {
			comments[f.pkg] = append(comments[f.pkg], f.path)
		}
	}
	for pkg := range pkgs {
		if n := len(comments[pkg]); n != 1 {
			t.Errorf("package %q has %d package comments %v, want exactly one", pkg, n, comments[pkg])
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range parseAll(t) {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		undocumented := func(n ast.Node, name string) {
			t.Errorf("%s:%d: exported %s has no doc comment", f.path, f.fset.Position(n.Pos()).Line, name)
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					undocumented(d, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, sp := range d.Specs {
					switch sp := sp.(type) {
					case *ast.TypeSpec:
						if sp.Name.IsExported() && d.Doc == nil && sp.Doc == nil {
							undocumented(sp, sp.Name.Name)
						}
					case *ast.ValueSpec:
						if sp.Names[0].IsExported() && d.Doc == nil && sp.Doc == nil && sp.Comment == nil {
							undocumented(sp, sp.Names[0].Name)
						}
					}
				}
			}
		}
	}
}

// exportedReceiver reports whether d is a function or a method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if idx, ok := e.(*ast.IndexExpr); ok {
		e = idx.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.IsExported()
}

// TestFilesStayReadable keeps the giant Conn away: files of the product stay under 650 lines.
func TestFilesStayReadable(t *testing.T) {
	for _, f := range parseAll(t) {
		if lines := f.fset.Position(f.ast.End()).Line; !f.test && lines > 650 {
			t.Errorf("%s has %d lines: cut it by concern", f.path, lines)
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range parseAll(t) {
		if !f.test {
			continue
		}
		bubble := slices.Contains(imports(f.ast), "testing/synctest") // there, time is virtual
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && !bubble {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && s.Sel.Name == "Sleep" {
					t.Errorf("%s:%d: a test sleeps", f.path, f.fset.Position(n.Pos()).Line)
				}
			}
			return true
		})
	}
}

// TestDocumentsPointAtWhatExists checks docs/rfc8684.md: every code or test name in its table must exist.
func TestDocumentsPointAtWhatExists(t *testing.T) {
	names := map[string]bool{}
	for _, f := range parseAll(t) {
		names[f.path] = true
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				names[f.pkg+"."+fn.Name.Name] = true
			}
		}
	}
	scripts := scriptFiles(t)
	for name := range scripts {
		names["script:"+name] = true
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/rfc8684.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	ids := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.HasPrefix(line, "|---") || strings.Contains(cells[1], "requirement") {
			continue
		}
		if len(cells) == 6 {
			rows++
			id, _, _ := strings.Cut(strings.TrimSpace(cells[1]), " ")
			ids[id] = true
		}
		for _, cell := range cells[2:4] {
			for _, ref := range quoted(cell) {
				if !names[ref] {
					t.Errorf("docs/rfc8684.md:%d: `%s` does not exist", i+1, ref)
				}
			}
		}
	}
	for name, about := range scripts {
		if len(about) == 0 {
			t.Errorf("script %s names no requirement of docs/rfc8684.md", name)
		}
		for _, id := range about {
			if !ids[id] {
				t.Errorf("script %s is about %s, which docs/rfc8684.md does not have", name, id)
			}
		}
	}
	if rows < 60 {
		t.Errorf("docs/rfc8684.md has %d rows, expected the whole checklist", rows)
	}
}

// scriptFiles returns the packet scripts by name, with the IDs of requirements that each names in its first line.
func scriptFiles(t *testing.T) map[string][]string {
	t.Helper()
	id := regexp.MustCompile(`\b[A-Z]{2,4}-\d\d\b`)
	files := os.DirFS(filepath.Join(root, "internal/script/testdata"))
	all := map[string][]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "common/") {
			return err
		}
		text, err := fs.ReadFile(files, name)
		first, _, _ := strings.Cut(string(text), "\n")
		all[name] = id.FindAllString(first, -1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// quoted returns what stands between backquotes.
func quoted(s string) []string {
	var out []string
	for i, part := range strings.Split(s, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}
