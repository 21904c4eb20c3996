// Package why has the program of the README. Its test runs it.
package why
