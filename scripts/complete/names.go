package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// mainTypes settles what cannot be told from the result of a package's New: the name
// that tells its other names apart. Names of core stay as they are.
var mainTypes = map[string]string{
	"core":        "",
	"core/quorum": "Quorum",
}

// stay are further words of a package: a name that contains one stays as it is.
var stay = map[string][]string{
	"atoms/molecules": {"Trigger"},
}

// renamed are the names for which the rule gives none that reads well.
var renamed = map[string]string{
	"atoms/molecules.Blueprint": "MoleculeBlueprint",
	"atoms/molecules.Run":       "MoleculeRun",
	"atoms/molecules.State":     "MoleculeState",
	"atoms/molecules.Step":      "MoleculeStep",
	"atoms/retry.Constant":      "RetrierConstantBackoff",
	"atoms/retry.Linear":        "RetrierLinearBackoff",
	"atoms/retry.Exponential":   "RetrierExponentialBackoff",
}

// settle gives every export its name in complete. An error names every collision and
// every package without a main type.
func settle(packages []*pkg) error {
	var errs []error
	taken := map[string]*export{}
	for _, p := range packages {
		word, ok := p.mainType()
		if !ok {
			errs = append(errs, fmt.Errorf("%s has no function New that returns its main type: give it a line in mainTypes, in scripts/complete/names.go", p.dir))
			continue
		}
		for _, e := range p.names {
			e.as = cmp.Or(renamed[p.dir+"."+e.name], flat(word, stay[p.dir], e.name))
			if other := taken[e.as]; other != nil {
				errs = append(errs, fmt.Errorf("%s and %s would both be %s: give one of them another name in renamed, in scripts/complete/names.go", other, e, e.as))
				continue
			}
			taken[e.as] = e
		}
	}
	return errors.Join(errs...)
}

// mainType returns the word that tells the package's names apart.
func (p *pkg) mainType() (word string, ok bool) {
	if word, ok := mainTypes[p.dir]; ok {
		return word, true
	}
	i := slices.IndexFunc(p.names, func(e *export) bool { return e.name == "New" })
	if i < 0 {
		return "", false
	}
	fn, ok := p.names[i].what.(*ast.FuncType)
	if !ok || fn.Results == nil {
		return "", false
	}
	return typeName(fn.Results.List[0].Type)
}

// typeName returns T for T, *T and T[...].
func typeName(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name, x.IsExported()
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	}
	return "", false
}

// flat returns the name in complete of a name of the package whose main type is word:
// New is NewBatcher, Options is BatcherOptions, ErrFull is ErrBatcherFull, and
// BatcherStats and, in core, everything stays.
func flat(word string, stay []string, name string) string {
	if strings.Contains(name, word) || slices.ContainsFunc(stay, func(s string) bool { return strings.Contains(name, s) }) {
		return name
	}
	for _, verb := range []string{"New", "Err"} {
		if rest, ok := strings.CutPrefix(name, verb); ok && (rest == "" || ast.IsExported(rest)) {
			return verb + word + rest
		}
	}
	return word + name
}
