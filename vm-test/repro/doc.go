// Package repro holds the tests of a whole build from the outside, with the
// compiled programs in bin/ and the inputs in the user's cache: that two builds
// by two users are the same bits, that a killed build harms nothing, what a
// build says when something is wrong with the machine it runs on, and what
// foreign programs say about its outputs.
package repro
