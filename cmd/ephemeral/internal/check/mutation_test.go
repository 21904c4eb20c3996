package check

import (
	"context"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

const testdata = "./cmd/ephemeral/internal/check/testdata/"

// loaded are the small programs, which all tests share: reading them takes longer than the tests.
var loaded = sync.OnceValues(func() (*flow.World, error) {
	return load(context.Background(), testdata+"planted", testdata+"alone", testdata+"legit", testdata+"whole")
})

// load reads packages of the repository, with their tests.
func load(ctx context.Context, patterns ...string) (*flow.World, error) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		return nil, err
	}
	return flow.Load(ctx, root, true, patterns...)
}

// world returns what load has read, and skips the test outside of the repository.
func world(t *testing.T, load func() (*flow.World, error)) *flow.World {
	t.Helper()
	if _, err := os.Stat("../../../../go.work"); err != nil {
		t.Skip("the programs to check are in the repository")
	}
	w, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// If two letters of a pattern, a lane or a class are swapped, the right name is suggested. The long form tries
// the demo and the guide as well; the short form every third place of the small programs.
func TestSwappedLetters(t *testing.T) {
	every, read := 3, loaded
	if os.Getenv("EPHEMERAL_LONG") != "" {
		every, read = 1, func() (*flow.World, error) {
			return load(t.Context(), "./demo/...", "./bench/guide/...")
		}
	}
	w := world(t, read)
	t.Cleanup(w.Index) // with the texts as they were
	mistaken := map[string]bool{}
	for _, f := range sure(Programs(w)) {
		if mistaken[fmt.Sprintf("%s:%d", f.File, f.Line)] = true; !strings.Contains(f.File, "testdata") {
			t.Fatal("before any mistake:", f)
		}
	}
	terms, raised := map[string]*term{}, map[string]bool{}
	for _, root := range w.Roots() {
		p := newProgram(w, root)
		p.terms(terms)
		for _, names := range p.names {
			for _, n := range names {
				raised[w.Fset.Position(n.Pos).String()] = true
			}
		}
	}
	places := map[string][]string{}
	for _, x := range terms {
		// A kind has the same mistake on both sides, and a line with a planted mistake has one already.
		if at := w.Fset.Position(x.Pos).String(); !raised[at] && !mistaken[place(w, x.Pos)] {
			places[at] = append(places[at], x.S)
		}
	}
	exprs := constants(w)
	random := rand.New(rand.NewPCG(1, 2))
	tried, reported, right := 0, 0, 0
	for i, at := range slices.Sorted(maps.Keys(places)) {
		if i%every > 0 || len(exprs[at]) == 0 {
			continue
		}
		first := exprs[at][0]
		wrong := swapped(constant.StringVal(first.info.Types[first.Expr].Value), random)
		if wrong == "" {
			continue
		}
		tried++
		was := first.info.Types[first.Expr]
		is := was
		is.Value = constant.MakeString(wrong)
		for _, x := range exprs[at] {
			x.info.Types[x.Expr] = is
		}
		w.Index()
		hit, meant := "", false
		for _, f := range sure(Programs(w)) {
			found := w.Fset.Position(f.Pos)
			if strings.HasPrefix(at, fmt.Sprintf("%s:%d:", found.Filename, found.Line)) {
				hit, meant = f.Message, meant || slices.Contains(places[at], f.Nearest)
			}
		}
		if hit != "" {
			reported++
		}
		if meant {
			right++
		} else {
			t.Logf("%s: %q: reported: %q", at, wrong, hit)
		}
		for _, x := range exprs[at] {
			x.info.Types[x.Expr] = was
		}
	}
	t.Logf("%d mistakes, %d reported, %d with the right name", tried, reported, right)
	if tried == 0 || reported*100 < tried*95 || right*100 < tried*90 {
		t.Error("too few")
	}
}

func sure(all []Finding) (faults []Finding) {
	for _, f := range all {
		if f.Sure {
			faults = append(faults, f)
		}
	}
	return faults
}

type constantExpr struct {
	ast.Expr
	info *types.Info
}

// constants returns the constant texts of the world by place. A package is read twice if it
// has tests.
func constants(w *flow.World) map[string][]constantExpr {
	all := map[string][]constantExpr{}
	for _, p := range w.Packages {
		for x, t := range p.TypesInfo.Types {
			if t.Value != nil && t.Value.Kind() == constant.String {
				at := w.Fset.Position(x.Pos()).String()
				all[at] = append(all[at], constantExpr{x, p.TypesInfo})
			}
		}
	}
	for _, same := range all { // the whole of a sum begins where its first operand does
		slices.SortFunc(same, func(a, b constantExpr) int { return int(b.End()-b.Pos()) - int(a.End()-a.Pos()) })
	}
	return all
}

// swapped swaps two letters that differ and stand side by side; "" if there are none.
func swapped(text string, random *rand.Rand) string {
	r := []rune(text)
	for _, i := range random.Perm(max(0, len(r)-1)) {
		if r[i] != r[i+1] && unicode.IsLetter(r[i]) && unicode.IsLetter(r[i+1]) {
			r[i], r[i+1] = r[i+1], r[i]
			return string(r)
		}
	}
	return ""
}
