package bench

import "slices"

// An Original is a row of the original, the C# library, as a program: the same name, the
// same number of operations, and the same work, done by this library.
type Original struct {
	Name string
	Ops  int
	New  func() Body // nil: it does not exist here, and Note says why
	Note string      // what one of the two does that the other does not

	allocs float64 // how many allocations an operation may make; negative: any number
}

// Originals lists the rows of the original, in its order.
func Originals() []Original {
	return slices.Concat(originalSignals, originalQueries, originalWork, originalParts, originalStores)
}

// originalRows are the same rows for the program compare.
func originalRows() []Row {
	var rows []Row
	for _, o := range Originals() {
		if o.New != nil {
			rows = append(rows, Row{Name: o.Name, MaxAllocs: o.allocs, Sides: []Side{{"ours", 0, o.New}, now(0)}})
		}
	}
	return rows
}
