// Package arch checks that the repository is built the way it says it is: which
// module may import which, what each brings along, and what every README shows.
//
// Each rule is a pure function from a [repo.Tree] to a list of violations, with the
// reason for the rule beside it. What varies between modules is data in package
// policy. The test of this package applies all rules to the checkout it runs in, and
// every rule to small broken trees to see that it fails.
package arch
