// Package roles knows what the library does with names of signals, lanes and classes. The
// table is made from directives in the library, by go run ./scripts/roles.
package roles

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
)

// Prefix is the beginning of the path of every package of the library. The directory follows.
const Prefix = "github.com/ephemeralgo/ephemeral/"

// Dir returns the directory of a package of the library; "" if the path is that of another
// package, or of tests.
func Dir(path string) string {
	dir, ok := strings.CutPrefix(path, Prefix)
	base, _, _ := strings.Cut(dir, "/")
	switch base {
	case "core", "atoms", "patterns", "complete":
		if ok && !strings.HasSuffix(path, "_test") {
			return dir
		}
	}
	return ""
}

// Role is one thing that the library does with a text. The verb is that of the directive.
type Role struct {
	Verb  string
	Parts []Part
}

// Part is a piece of a template: a text, or what stands in braces.
type Part struct {
	Text  string // as it is written; any text if it is Any
	Slot  bool
	Index int    // of a parameter, or Recv
	Ref   string // for a field: like "core Options.Name"
	Or    string // what the library takes if the field is ""
}

const (
	// Recv is the Index of the receiver.
	Recv = -1
	// Any stands for any text in a [Part].
	Any = "\x00"
)

//go:embed table.txt
var table string

var all = read(table)

// Of returns the roles of a name with its directory, such as "core Sink.Has".
func Of(name string) []Role { return all[name] }

// Linked returns what the package in a directory raises by itself, in every program that has it.
func Linked(dir string) []Role { return all[dir] }

func read(table string) map[string][]Role {
	roles := map[string][]Role{}
	for line := range strings.Lines(table) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		dir, key, r := f[0], f[0]+" "+f[1], Role{Verb: f[2]}
		text := strings.Join(f[3:], "")
		if r.Verb == "defines" {
			kind, rest, _ := strings.Cut(text, " ")
			r.Verb, text = "defines "+kind, rest
		}
		if r.Verb == "raises" || r.Verb == "linked" {
			text = strings.ReplaceAll(text, "*", Any)
		}
		r.Parts = parse(text)
		roles[key] = append(roles[key], r)
		if r.Verb == "linked" {
			roles[dir] = append(roles[dir], r)
		}
	}
	return roles
}

// piece is a plain text, or a slot: {#1}, {recv}, {core Options.Name} or {core Options.Name|name}.
var piece = regexp.MustCompile(`[^{]+|\{(?:#(\d+)|recv|([^|}]*)\|?([^}]*))\}`)

// parse splits a template.
func parse(text string) (parts []Part) {
	for _, m := range piece.FindAllStringSubmatch(text, -1) {
		p := Part{Text: m[0], Slot: m[0][0] == '{', Index: Recv, Ref: m[2], Or: m[3]}
		if n, err := strconv.Atoi(m[1]); err == nil {
			p.Index = n
		}
		parts = append(parts, p)
	}
	return parts
}
