package arch

import (
	"fmt"
	"path"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/uses"
)

// floors checks that no file of core's root package uses a name of a higher floor, and that
// few files use each other in circles.
func floors(t *repo.Tree, report reporter) {
	const dir = "core"
	p := t.Package(dir)
	if p == nil {
		return
	}
	at := map[string]int{}
	var order []string
	for i, floor := range policy.Floors {
		order = append(order, floor.Files...)
		for _, file := range floor.Files {
			at[file] = i
		}
	}
	for _, f := range p.Files {
		name := strings.TrimSuffix(path.Base(f.Name), ".go")
		if _, ok := at[name]; !ok && name != "doc" && !f.Test() {
			report(f.Name, "is on no floor", "add it to the floor in policy.Floors whose reason fits, after the files that it uses")
		}
	}
	all := uses.Of(t, p)
	reported := map[[2]string]bool{}
	for _, u := range all {
		pair := [2]string{u.From, u.Name}
		if from, to := at[u.From], at[u.To]; from < to && !reported[pair] {
			reported[pair] = true
			low, high := policy.Floors[from], policy.Floors[to]
			report(t.At(u.Pos), fmt.Sprintf("%s:%s is declared in %s.go, on floor %s, but %s.go is on floor %s: %s", u.From, u.Name, u.To, high.Name, u.From, low.Name, low.Reason),
				"move the function that uses it up, or move what it needs of "+u.Name+" down; an interface of one method often serves")
		}
	}
	if knots := uses.Knots(all); len(knots) > 0 && len(knots[0]) > policy.MaxKnot {
		report(dir, fmt.Sprintf("%d files all reach each other: %s", len(knots[0]), strings.Join(knots[0], " ")),
			fmt.Sprintf("take a use out, so that at most %d do", policy.MaxKnot))
	}
	if back, arrows := uses.Back(all, order); back*100 > policy.MaxBack*arrows {
		report(dir, fmt.Sprintf("%d of %d arrows between files lead to a file that comes later in policy.Floors", back, arrows),
			fmt.Sprintf("move declarations, or files within a floor, so that at most %d %% do", policy.MaxBack))
	}
}
