// Package archtest keeps the architecture true: floors, purity, one owner per
// library, and the house's rules for packages, variables and sizes. It has tests
// only. A rule is a function from the parsed sources to findings; testdata holds,
// for every rule, sources that break it and the findings that they must give.
package archtest
