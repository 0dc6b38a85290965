import Glibc

/// Whether the tests run that are large, long or random (`make test-all`). docs/HACKING.md lists them.
package let isTestingAll = getenv("GREENROOM_TEST_ALL") != nil
