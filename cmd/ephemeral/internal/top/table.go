package top

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// An object is an object of the page's JSON. Its numbers are of type json.Number.
type object map[string]any

// A row is one thing. Rows of one kind stand together, as a table.
type row struct {
	kind  *kind
	id    string // no other row of the screen has it
	cells []string
	opens view // what enter shows; the zero value: nothing
	acts  []action
}

// A view is what the screen shows.
type view struct {
	name       string
	parameters map[string]any
	can        any    // actions on what it shows
	back       string // the row that is chosen after it
}

var overview = view{name: "overview"}

// An action is a change that a key asks for.
type action struct {
	key  string
	text string // what it changes
	body map[string]any
}

// isLimit reports whether the action needs a number.
func (a action) isLimit() bool { return a.body["action"] == "limit" }

// find returns the objects at a path. They take the fields from the object around them.
func (o object) find(path, from string) (found []object) {
	name, rest, deeper := strings.Cut(path, ".")
	list, ok := o[name].([]any)
	if !ok {
		list = []any{o[name]}
	}
	for _, element := range list {
		child, ok := element.(map[string]any)
		if deeper {
			found = append(found, object(child).find(rest, from)...)
		} else if ok {
			maps.Copy(child, o.pick(from))
			found = append(found, child)
		}
	}
	return found
}

// pick returns the fields of a list such as "coordinator=id" under their new names.
func (o object) pick(fields string) map[string]any {
	picked := map[string]any{}
	for field := range strings.FieldsSeq(fields) {
		name, from, _ := strings.Cut(field, "=")
		picked[name] = o[from]
	}
	return picked
}

// rows are what a view shows of a frame.
func (o object) rows(v view, at clock) (rows []row) {
	for i := range kinds[v.name] {
		k, first := &kinds[v.name][i], len(rows)
		for _, thing := range o.find(k.path, k.from) {
			rows = append(rows, k.row(thing, v.can, at))
		}
		if newestFirst[k.name] {
			slices.Reverse(rows[first:])
		}
	}
	return rows
}

func (k *kind) row(o object, can any, at clock) (r row) {
	r.kind = k
	for column := range strings.FieldsSeq(k.columns) {
		r.cells = append(r.cells, cmp.Or(clean(at.text(column, o[column])), "-"))
	}
	r.id = k.name + " " + strings.Join(r.cells[:k.keys], " ")
	if o["can"] != nil {
		can = o["can"]
	}
	if name, parameters, ok := strings.Cut(k.opens, " "); ok {
		r.opens = view{name: name, parameters: o.pick(parameters), can: can}
	}
	permitted, _ := can.([]any)
	for _, offer := range k.actions {
		name := offer.action
		if o["paused"] == true && offer.ifPaused != "" {
			name = offer.ifPaused
		}
		if slices.Contains(permitted, any(name)) {
			body := o.pick(offer.fields)
			body["action"] = name
			r.acts = append(r.acts, action{offer.key, name + " " + k.name + " " + strings.Join(r.cells[:min(2, k.keys)], " of "), body})
		}
	}
	return r
}

// A clock writes values: times and durations as they are for scripts, and as distances from
// now for people.
type clock struct {
	now   time.Time
	exact bool
}

func (c clock) text(column string, value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return column
		}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil && !c.exact {
			return c.distance(t)
		}
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil && !c.exact && strings.HasSuffix(column, "Ms") {
			return (time.Duration(n) * time.Millisecond).Round(time.Second).String()
		}
		return v.String()
	case []any: // counts of a queue, or the throughput of seconds
		var texts []string
		for _, element := range v {
			if count, ok := element.(map[string]any); ok {
				texts = append(texts, fmt.Sprint(count["state"], "=", count["items"]))
			}
		}
		if texts == nil && len(v) > 0 {
			return c.text(column, v[len(v)-1])
		}
		return strings.Join(texts, " ")
	case map[string]any: // a signal or progress
		return c.text(column, v["name"]) + c.text(column, v["text"])
	}
	return ""
}

func (c clock) distance(t time.Time) string {
	d := c.now.Sub(t).Round(time.Second)
	if d < 0 {
		return "in " + (-d).String()
	}
	return d.String()
}

// clean replaces what a terminal could take for a command, or what hides other text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
