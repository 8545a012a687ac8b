// For files that wait for a std::condition_variable. GCC 12's libstdc++ has a second version of
// wait(), which would ask for GCC 12's library on the user's machine; the first does the same.
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
