package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// mainTypes are the main types of packages whose function New does not return the main
// type. The main type is the word that is added to other names. If it is empty, nothing is
// added.
var mainTypes = map[string]string{
	"atoms/data/file":                 "FileStore",
	"atoms/data/postgres":             "Store",
	"atoms/data/sqlite":               "Store",
	"atoms/durable/flow":              "Flow",
	"atoms/durable/postgres":          "QueueStore",
	"atoms/durable/sqlite":            "QueueStore",
	"atoms/mesh":                      "Mesh",
	"atoms/sqlitewriter":              "Writer",
	"patterns/persistentwindow":       "Window",
	"core":                            "",
	"core/signals":                    "",
	"patterns/fxmodule":               "Fx",
	"patterns/jobs":                   "Job",
	"patterns/flightrecorder":         "Flight",
	"patterns/logging":                "Logging",
	"patterns/signallogwatcher":       "LogWatcher",
	"patterns/longwindowdemo":         "LongWindowDemo",
	"patterns/signalreactionshowcase": "SignalReactionShowcase",
	"patterns/signalinghttp":          "HTTP",
	"patterns/backpressure":           "Backpressure",
	"patterns/controlledfanout":       "ControlledFanout",
	"patterns/keyedpriorityfanout":    "KeyedPriorityFanout",
	"patterns/dynamicconcurrency":     "DynamicConcurrency",
	"patterns/adaptiverate":           "AdaptiveRate",
	"core/breaker":                    "BreakerRule",
	"core/bucket":                     "Bucket",
	"core/durations":                  "Durations",
	"core/profile":                    "Profile",
	"core/inspect":                    "",
	"core/filelock":                   "Lock",
	"core/flight":                     "Flight",
	"core/whatif":                     "WhatIf",
	"core/guard":                      "Guard",
	"core/outbox":                     "Outbox",
	"core/quorum":                     "Quorum",
}

// stay are further words of a package: nothing is added to names that contain such a word.
var stay = map[string][]string{
	"atoms/molecules": {"Trigger"},
}

// renamed are names that do not read well with the main type.
var renamed = map[string]string{
	"core/breaker.Breaker":      "BreakerRule",
	"core/inspect.Actions":      "CoordinatorActions",
	"core/signals.Gate":         "ScopeGate",
	"patterns/jobs.New":         "NewJobRunner",
	"atoms/mesh.Join":           "JoinMesh",
	"atoms/molecules.Blueprint": "MoleculeBlueprint",
	"atoms/molecules.Run":       "MoleculeRun",
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
			const do = "add it to mainTypes in scripts/complete/names.go"
			errs = append(errs, fmt.Errorf("%s has no function New that returns its main type: %s", p.dir, do))
			continue
		}
		for _, e := range p.names {
			e.as = cmp.Or(renamed[p.dir+"."+e.Name], flat(word, stay[p.dir], e.Tok, e.Name))
			if other := taken[p.in()+"."+e.as]; other != nil {
				const do = "add one of them to renamed in scripts/complete/names.go"
				errs = append(errs, fmt.Errorf("%s and %s would both be %s: %s", other, e, e.as, do))
				continue
			}
			taken[p.in()+"."+e.as] = e
		}
	}
	return errors.Join(errs...)
}

// mainType returns the word that is added to names of the package.
func (p *pkg) mainType() (word string, ok bool) {
	if word, ok := mainTypes[p.dir]; ok {
		return word, true
	}
	i := slices.IndexFunc(p.names, func(e *export) bool { return e.Name == "New" })
	if i < 0 {
		return "", false
	}
	fn, ok := p.names[i].Node.(*ast.FuncDecl)
	if !ok || fn.Type.Results == nil {
		return "", false
	}
	word = repo.TypeName(fn.Type.Results.List[0].Type)
	return word, ast.IsExported(word)
}

// flat returns the name in complete of a name of a package. If the word is Batcher, the
// functions New and Open become NewBatcher and OpenBatcher, the constant Open and the type
// Options BatcherOpen and BatcherOptions, and the variable ErrFull ErrBatcherFull.
// BatcherStats stays, and so does a name that contains a word of stay.
func flat(word string, stay []string, tok token.Token, name string) string {
	if strings.Contains(name, word) || slices.ContainsFunc(stay, func(s string) bool { return strings.Contains(name, s) }) {
		return name
	}
	verbs := map[token.Token][]string{token.FUNC: {"New", "Open"}, token.VAR: {"Err"}}
	for _, verb := range verbs[tok] {
		if rest, ok := strings.CutPrefix(name, verb); ok && (rest == "" || verb != "Open" && ast.IsExported(rest)) {
			return verb + word + rest
		}
	}
	return word + name
}
