package bench

import (
	"path"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A matchCase answers the same question about names in several ways, our way first.
type matchCase struct {
	row   string
	names [16]string
	ways  []matchWay
}

// A matchWay compares each name with text.
type matchWay struct {
	name  string
	match func(text, name string) bool
	text  string
}

const resizeCommand = "window.size.set" // a command

// matchCases have no goals as ratios. The goals in nanoseconds depend on the machine: 12
// for an exact name, a prefix and a suffix, 25 for inner stars, 6 for a command. The other
// sides are the plain function of package strings, and path.Match. Its star does not match
// a slash, but no name has a slash.
var matchCases = []matchCase{
	{"op=match/pattern=exact", names, []matchWay{
		{"ours", signals.Match, "file.saved.7"},
		{"equality", func(text, name string) bool { return text == name }, "file.saved.7"},
		{"path.Match", glob, "file.saved.7"},
	}},
	{"op=match/pattern=prefix", names, []matchWay{
		{"ours", signals.Match, "file.saved.*"},
		{"HasPrefix", hasPrefix, "file.saved."},
		{"path.Match", glob, "file.saved.*"},
	}},
	{"op=match/pattern=suffix", names, []matchWay{
		{"ours", signals.Match, "*.7"},
		{"HasSuffix", hasSuffix, ".7"},
		{"path.Match", glob, "*.7"},
	}},
	{"op=match/pattern=inner-star", names, []matchWay{
		{"ours", signals.Match, "file.*.7"},
		{"HasPrefix+HasSuffix", func(text, name string) bool { return hasPrefix("file.", name) && hasSuffix(text, name) }, ".7"},
		{"path.Match", glob, "file.*.7"},
	}},
	{"op=match/pattern=contains", names, []matchWay{
		{"ours", signals.Match, "*saved*"},
		{"Contains", contains, "saved"},
		{"path.Match", glob, "*saved*"},
	}},
	{"op=match/pattern=inner-stars", names, []matchWay{
		{"ours", signals.Match, "file*saved*7"},
		{"HasPrefix+Contains+HasSuffix", func(text, name string) bool {
			return hasPrefix("file", name) && contains(text, name) && hasSuffix("7", name)
		}, "saved"},
		{"path.Match", glob, "file*saved*7"},
	}},
	{"op=match/pattern=list", names, []matchWay{
		{"ours", signals.Match, "job.*, file.saved.*"},
		{"HasPrefix-twice", func(text, name string) bool { return hasPrefix("job.", name) || hasPrefix(text, name) }, "file.saved."},
	}},
	{"op=parse-command/at=start", commands(""), []matchWay{
		{"ours", parses, resizeCommand},
		{"HasPrefix", hasPrefix, resizeCommand + ":"},
	}},
	{"op=parse-command/at=scope", commands("app."), []matchWay{
		{"ours", parses, resizeCommand},
		{"Contains", contains, "." + resizeCommand + ":"},
	}},
	{"op=parse-command/at=none", names, []matchWay{
		{"ours", parses, resizeCommand},
		{"Contains", contains, resizeCommand + ":"},
	}},
}

func hasPrefix(text, name string) bool { return strings.HasPrefix(name, text) }
func hasSuffix(text, name string) bool { return strings.HasSuffix(name, text) }
func contains(text, name string) bool  { return strings.Contains(name, text) }

func glob(text, name string) bool {
	ok, _ := path.Match(text, name)
	return ok
}

func parses(text, name string) bool {
	_, ok := signals.ParseCommand(name, text)
	return ok
}

// commands are names with the command resizeCommand.
func commands(scope string) (list [16]string) {
	for i, payload := range names {
		list[i] = scope + resizeCommand + ":" + payload
	}
	return list
}

// matchRows measure whether a name matches a pattern, or has a command.
func matchRows() []Row {
	var rows []Row
	for _, c := range matchCases {
		row := Row{Name: c.row}
		for _, way := range c.ways {
			row.Sides = append(row.Sides, loop(way.name, 0, func(n int) { way.run(c.names, n) }))
		}
		rows = append(rows, row)
	}
	return rows
}

func (w matchWay) run(names [16]string, n int) {
	for i := range n {
		w.match(w.text, names[i%len(names)])
	}
}
