package coretest

import "io/fs"

// hostile is an error that panics in each of its methods, and cannot be compared.
type hostile struct{ _ []int }

func (hostile) Error() string   { panic("Error") }
func (hostile) Is(error) bool   { panic("Is") }
func (hostile) As(any) bool     { panic("As") }
func (hostile) Unwrap() error   { panic("Unwrap") }
func (hostile) Permanent() bool { panic("Permanent") }

// HostileErrors returns errors whose methods panic: bare ones, and one that wraps another.
func HostileErrors() []error {
	var none *fs.PathError
	return []error{none, hostile{}, wraps{hostile{}}}
}

type wraps struct{ error }

func (w wraps) Unwrap() error { return w.error }
