// Package complete is all of Ephemeral with one import. It has no other code. Every
// type, constant and error is an alias for the original in its package, and every
// function calls the original. So values made here and values made there are the
// same.
//
//	uploads, err := complete.NewCoordinator(save, complete.Options{MaxConcurrency: 8})
//	retrier, err := complete.NewRetrier(complete.RetrierOptions{Attempts: 5})
//	...
//
// Names of package core stay as they are. A name of another package has the package's
// main type before it, unless it contains that already: retry.New is NewRetrier,
// retry.Options is RetrierOptions, retry.Wrap is RetrierWrap, retry.ErrBudget is
// ErrRetrierBudget. A few say more than that: retry.Linear is RetrierLinearBackoff.
// The documentation is with the packages; each name here says which one it comes from.
//
// A program that needs one part takes its module instead, and downloads less.
package complete
