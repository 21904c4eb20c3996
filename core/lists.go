package core

import "slices"

// cacheLine keeps the fields before it and the fields after it on different cache lines.
type cacheLine [64]byte

// put sets a value in a map, which it makes if there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// without returns a list without an element; it does not change the list.
func without[E comparable](list []E, e E) []E {
	i := slices.Index(list, e)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}
