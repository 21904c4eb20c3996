// Package guide has the examples of docs/guide. They are compiled and run with the tests.
package guide
