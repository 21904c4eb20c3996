package coretest

import "io/fs"

// Hostile is an error that panics in each of its methods, and cannot be compared. Its zero value is ready to use.
type Hostile struct{ _ []int }

func (Hostile) Error() string   { panic("Error") }
func (Hostile) Is(error) bool   { panic("Is") }
func (Hostile) As(any) bool     { panic("As") }
func (Hostile) Unwrap() error   { panic("Unwrap") }
func (Hostile) Permanent() bool { panic("Permanent") }

// HostileErrors returns errors whose methods panic: bare ones, and one that wraps another.
func HostileErrors() []error {
	var none *fs.PathError
	return []error{none, Hostile{}, wraps{Hostile{}}}
}

type wraps struct{ error }

func (w wraps) Unwrap() error { return w.error }
