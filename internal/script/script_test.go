package script

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// longest is how long a script may wait to be run against a kernel.
const longest = 4 * time.Second

// scripts parses all of testdata, without what others use.
func scripts(t *testing.T) map[string]*Script {
	t.Helper()
	files := os.DirFS("testdata")
	all := map[string]*Script{}
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Dir(file) == "common" {
			return err
		}
		s, err := Parse(files, file)
		all[file] = s
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestScriptsOnTheStack(t *testing.T) {
	for file, s := range scripts(t) {
		t.Run(file, func(t *testing.T) {
			if err := Run(s, NewStack(s.Setup)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A script says what it is about, and is marked as too slow for a kernel only if it is.
func TestScriptsAreInOrder(t *testing.T) {
	all := scripts(t)
	if len(all) < 120 {
		t.Errorf("%d scripts, want at least 120", len(all))
	}
	for file, s := range all {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(text), "\n"); !strings.HasPrefix(first, "# ") || !strings.Contains(first, "RFC ") {
			t.Errorf("%s does not begin with what it shows: %q", file, first)
		}
		if slow := s.Waits() > longest; slow != s.Slow {
			t.Errorf("%s takes %v and says of itself that it is slow: %t", file, s.Waits(), s.Slow)
		}
	}
}

// A script that asks for something else than what happens fails, at the line that does so.
func TestWrongScriptsFail(t *testing.T) {
	for _, wrong := range []string{
		"> S. ack=2 mp_capable", "> S. ack=1", "> S. ^mp_capable", "> . ack=1 mp_capable", "> none", "> S. mp_capable win<1", "> S. mp_capable flags=AH",
		"> S. mp_capable key=flip($a)", "> S. mp_capable @10ms..20ms", "! accept", "> S. flow=2 mp_capable", "< . seq=$unbound", "< . what", "< X", "! what",
	} {
		files := fstest.MapFS{"x": {Data: []byte("! listen\n< S seq=0 mp_capable\n" + wrong)}}
		s, err := Parse(files, "x")
		if err != nil {
			t.Fatal(err)
		}
		var at *LineError
		if err := Run(s, NewStack(s.Setup)); !errors.As(err, &at) || at.Where != "x:3" {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, wrong := range []string{"", "? x", "set what", "set mtu=x", "use x", "use y", "+ long", "<", "kernel: differs somehow", "kernel: differs RFC 1: why"} {
		if _, err := Parse(fstest.MapFS{"x": {Data: []byte(wrong)}, "common/x": {Data: []byte("use x")}}, "x"); err == nil {
			t.Errorf("%q is a script", wrong)
		}
	}
}

// RFC 8684, Sections 3.1, 3.2 and 3.4.1, by the values that internal/wire's tests have too.
func TestFunctions(t *testing.T) {
	vs := variables{"a": octets([]byte{1, 2, 3, 4, 5, 6, 7, 8})}
	for expr, want := range map[string]string{
		"0x10": "16", "text": "text", "$a": "0102030405060708", "token($a)": "1719930330", "flip(6)": "7", "flip(flip($a))": "0102030405060708",
		"hmac($a,0x1112131415161718,0x21222324,0x31323334)":               "e19ad4ac22d51c2f064d49662431bc8f9d6b3a29",
		"addr_hmac(0x0102030405060708,0x1112131415161718,1,192.0.2.10,0)": "5e4386ace418f7fa",
	} {
		if v, err := vs.eval(expr); err != nil || !strings.HasPrefix(v.String(), want) {
			t.Errorf("%s is %v, %v, want %s", expr, v, err, want)
		}
	}
	for _, wrong := range []string{"$b", "token(x)", "hmac($a)", "flip(x)", "token($b)"} {
		if v, err := vs.eval(wrong); err == nil {
			t.Errorf("%s is %v", wrong, v)
		}
	}
}
