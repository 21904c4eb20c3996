package filepipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// row is a row of the table as text; what a row does not have is "-".
type row struct {
	path, sha256, format, width, height, bytes, mime, thumb, duplicateOf, err string
}

// readRows reads the table like any reader: later lines add to earlier ones.
func readRows(t testing.TB, table string) map[string]row {
	t.Helper()
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]any{}
	for line := range strings.Lines(string(data)) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		path := fields["path"].(string)
		if rows[path] == nil {
			rows[path] = map[string]any{}
		}
		maps.Copy(rows[path], fields)
	}
	plain := func(v any) string {
		if s := fmt.Sprint(v); !strings.HasPrefix(s, `"`) {
			return s
		} else if s, err := strconv.Unquote(s); err == nil {
			return s
		}
		t.Errorf("%v is quoted wrongly", v)
		return ""
	}
	all := map[string]row{}
	for _, fields := range rows {
		text := func(name string) string {
			if v, ok := fields[name]; ok {
				return plain(v)
			}
			return "-"
		}
		r := row{text("path"), text("sha256"), text("format"), text("width"), text("height"), text("bytes"), text("mime"), text("thumb"), text("duplicate_of"), text("error")}
		all[r.path] = r
	}
	return all
}

func newStore(t *testing.T, path string) *store {
	t.Helper()
	s, err := openStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b#c%20d&e=é.jsonl")
	s := newStore(t, path)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.insert(File{"ok", 10, "aa", "image/png", "png", 2, 3}, ""))
	check(s.setThumb("ok", "thumbs/aa.png"))
	check(s.insert(File{"torn", 11, "bb", "image/gif", "gif", 4, 5}, ""))
	check(s.setError("torn", "decode: unexpected EOF"))
	check(s.insert(File{Path: "locked"}, "permission denied"))
	check(s.insert(File{Path: "odd '\n\xff; DROP TABLE files; --"}, "x"))
	check(s.close())

	want := map[string]row{
		"ok":     {"ok", "aa", "png", "2", "3", "10", "image/png", "thumbs/aa.png", "-", "-"},
		"torn":   {"torn", "bb", "gif", "4", "5", "11", "image/gif", "-", "-", "decode: unexpected EOF"},
		"locked": {"locked", "-", "-", "-", "-", "-", "-", "-", "-", "permission denied"},
	}
	want["odd '\n\xff; DROP TABLE files; --"] = row{"odd '\n\xff; DROP TABLE files; --", "-", "-", "-", "-", "-", "-", "-", "-", "x"}
	got := readRows(t, path)
	for name, w := range want {
		if got[name] != w {
			t.Errorf("row\n got %q\nwant %q", got[name], w)
		}
	}
	coretest.Check(t, len(got) == len(want), "%d rows, want %d", len(got), len(want))
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 2 {
		t.Errorf("a closed store leaves %q, want the table and its lock alone", left)
	}
}

// In the simple model, the lowest path of equal files is the original, in whatever order
// they come.
func TestStoreClaimInAnyOrder(t *testing.T) {
	contents := map[string]string{"a": "1", "b": "1", "c": "1", "d": "2", "e": "3", "f": "3", "g": "1"}
	want := map[string]string{"a": "-", "b": "a", "c": "a", "d": "-", "e": "-", "f": "e", "g": "a"}
	random := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), tableName)
	for range 20 {
		s := newStore(t, path)
		order := strings.Split("abcdefg", "")
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		found := 0
		for _, name := range order {
			if err := s.insert(File{Path: name, SHA256: contents[name]}, ""); err != nil {
				t.Fatal(err)
			}
			d, err := s.claim(name, contents[name])
			if err != nil {
				t.Fatal(err)
			}
			if d != (Duplicate{}) {
				found++
				coretest.Check(t, d.Of < d.Path && contents[d.Of] == contents[d.Path], "order %v: %+v", order, d)
			}
		}
		coretest.Check(t, found == 4, "order %v: %d duplicates found, want 4", order, found)
		if err := s.settle(); err != nil {
			t.Fatal(err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		for name, r := range readRows(t, path) {
			if r.duplicateOf != want[name] {
				t.Errorf("order %v: duplicate_of of %s = %s, want %s", order, name, r.duplicateOf, want[name])
			}
		}
	}
}

func TestStoreRefusesASecondWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), tableName)
	s := newStore(t, path)
	defer s.close()
	if other, err := openStore(t.Context(), path); err == nil {
		other.close()
		t.Fatal("two stores on one table")
	} else if !strings.Contains(err.Error(), "locked") {
		t.Errorf("openStore: %v, want it to say locked", err)
	}
}

func TestStoreRefusesWhatIsNoTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), tableName)
	if err := os.WriteFile(path, []byte(strings.Repeat("precious notes\n", 100)), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, err := openStore(t.Context(), path); err == nil {
		s.close()
		t.Fatal("openStore accepted a text file")
	}
	if data, err := os.ReadFile(path); err != nil || !slices.Equal(data[:8], []byte("precious")) {
		t.Errorf("the text file was not left alone: %q, %v", data[:8], err)
	}
}

// A row is durable after it was written: another process may read it while the run goes on, or after the run
// was killed.
func TestStoreSurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, filepath.Join(dir, tableName))
	defer s.close()
	if err := s.insert(File{Path: "kept"}, ""); err != nil {
		t.Fatal(err)
	}
	// A copy of the present files is what a killed process leaves.
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if _, ok := readRows(t, filepath.Join(crashed, tableName))["kept"]; !ok {
		t.Error("the row is lost")
	}
}
