package check

import (
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
	"testing"
	"unicode"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// load reads packages of the repository, and skips the test outside of it.
func load(t *testing.T, tests bool, patterns ...string) *flow.World {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		t.Skip("the programs to check are in the repository")
	}
	w, err := flow.Load(t.Context(), root, tests, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// If two letters of a pattern, a lane or a class are swapped, the right name is suggested.
func TestSwappedLetters(t *testing.T) {
	short, programs := os.Getenv("EPHEMERAL_LONG") == "", []string{"./demo/...", "./bench/guide/..."}
	if short {
		programs = []string{"./examples/..."} // they link fewer libraries
	}
	w := load(t, true, programs...)
	if found := sure(Programs(w)); len(found) > 0 {
		t.Fatal("before any mistake:", found)
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
		if at := w.Fset.Position(x.Pos).String(); !raised[at] { // a kind has the same mistake on both sides
			places[at] = append(places[at], x.S)
		}
	}
	exprs := constants(w)
	random := rand.New(rand.NewPCG(1, 2))
	tried, reported, right := 0, 0, 0
	for _, at := range slices.Sorted(maps.Keys(places)) {
		if len(exprs[at]) == 0 {
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
			if strings.HasPrefix(at, fmt.Sprintf("%s:%d:", f.File, f.Line)) {
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
