# SPDX-License-Identifier: BSD-3-Clause
#
# calls.awk - writes module gradsync_calls, the part of the binding that says nothing of its own:
# the procedures of calls.def, which tells how to read it. With arrays=no those of arrays are left
# out.
#
# awk -v arrays=yes|no -f headers.awk -f calls.awk HEADER... calls.def

FILENAME ~ /\.def$/ && /^gs_/ { end_row(); row = $0 }
FILENAME ~ /\.def$/ && /^ / { row = row " " $0 }

# Takes a row apart: d[1..dummies] are the names; of each by name: c_name[], mark[], is_array[],
# per[], also_32[], is_optional[], initial[].
function parse(text,    words, n, i, w)
{
    split("", c_name); split("", mark); split("", is_array); split("", per); split("", also_32)
    split("", only_32)
    split("", is_optional); split("", initial); split("", expression); split("", dummy_of)
    dummies = 0
    has_array = 0
    n = split(text, words, " ")
    call_name = words[1]
    sub(/:$/, "", call_name)
    target = call_name
    i = 2
    if (words[2] == "by") {
        target = words[3]
        sub(/:$/, "", target)
        i = 4
    }
    for (; i <= n; i++) {
        w = words[i]
        if (w ~ /:=/) {
            expression[substr(w, 1, index(w, ":=") - 1)] = substr(w, index(w, ":=") + 2)
            continue
        }
        parse_dummy(w)
    }
    if (has_array && target == call_name) target = "gsi_fortran_" substr(call_name, 4)
    if (arrays == "yes" && !(target in returns)) fail(target " is in no header")
    for (i = 1; i <= dummies; i++) dummy_of[c_name[d[i]]] = d[i]
}

function parse_dummy(w,    name, rest)
{
    match(w, /^[a-z0-9_]+/)
    name = substr(w, 1, RLENGTH)
    rest = substr(w, RLENGTH + 1)
    d[++dummies] = name
    c_name[name] = name
    if (rest ~ /^=/) {
        match(rest, /^=[a-z0-9_]+/)
        c_name[name] = substr(rest, 2, RLENGTH - 1)
        rest = substr(rest, RLENGTH + 1)
    }
    if (rest ~ /^[(][)]/) { is_array[name] = has_array = 1; rest = substr(rest, 3) }
    if (rest ~ /^\[[a-z]*\]/) {
        match(rest, /^\[[a-z]*\]/)
        per[name] = RLENGTH > 2 ? substr(rest, 2, RLENGTH - 2) : "ranks"
        rest = substr(rest, RLENGTH + 1)
    }
    if (rest ~ /^[|]32/) { also_32[name] = 1; rest = substr(rest, 4) }
    if (rest ~ /^@32/) { only_32[name] = 1; rest = substr(rest, 4) }
    if (rest ~ /^!/) { mark[name] = rest ~ /^!!/ ? "!!" : "!"; sub(/^!+/, "", rest) }
    if (rest ~ /^[?]/) { is_optional[name] = 1; initial[name] = substr(rest, 2); rest = "" }
    if (rest != "") fail("what is " rest " in " row)
}

function end_row()
{
    if (row == "") return
    parse(row)
    if (has_array || dummy_of["p"] == "p") is_generic[call_name] = 1
    if (!(target in returns)) { # of arrays, which are left out
        row = ""
        return
    }
    rows[++row_count] = row
    row = ""
}

# Type and attributes of a dummy argument of the row that was parsed; [bits] of what has both.
function dummy_type(name, bits,    type, out, wide)
{
    type = type_of[target, c_name[name]]
    out = is_optional[name] ? ", optional" : ""
    wide = "integer(c_int64_t)"
    if (((name in also_32) && bits == 32) || (name in only_32)) wide = "integer(c_int32_t)"
    if (is_new(name)) return "type(gs_" name "), intent(out) ::"
    if (is_thing(name)) return "type(gs_" name "), intent(in) ::"
    if (name == "p") return pointee[form] ", pointer, intent(out) ::(..)"
    if (is_array[name])
        return "type(*), dimension(..)" (name == "array" ? ", target" : "") ", asynchronous" \
            ", intent(" (type ~ /^const/ ? "in" : "inout") ")" out " ::"
    if (has_array && is_list(c_name[name])) return wide ", intent(in)" out " ::(:)"
    if (has_array && name == "count") return wide ", intent(in)" (bits == 32 ? "" : out) " ::"
    if (name == "stream") return "integer(c_intptr_t), intent(in), optional ::"
    if (name == "as") return "integer(c_int), intent(in), optional ::"
    if (mark[name] != "" && type != "const int *")
        return "logical, intent(" \
            (type != "int *" ? "in" : mark[name] == "!!" ? "inout" : "out") ")" out " ::"
    if (type == "size_t" || type == "int64_t") return wide ", intent(in)" out " ::"
    if (type == "const size_t *")
        return "integer(c_size_t), intent(in)" (is_optional[name] ? out : ", contiguous") " ::(:)"
    if (type == "const int64_t *") return wide ", intent(in)" out " ::(:)"
    if (type == "const int *")
        return (mark[name] != "" ? "logical" : "integer(c_int)") ", intent(in)" out " ::(:)"
    if (type == "int *") return "integer(c_int), intent(out)" out " ::"
    if (type == "int64_t *") return "class(*), intent(inout), optional ::"
    if (type == "double") return "real(c_double), intent(in)" out " ::"
    if (type == "double *") return "real(c_double), intent(out)" out " ::"
    if (type == "const char *") return "character(*), intent(in)" out " ::"
    if (type == "void *const *") return "type(c_ptr), intent(in) ::(:)"
    if (type == "void **") return "type(c_ptr), intent(out) ::"
    if (type == "gs_comm_t **") return "type(gs_comm), intent(out) ::"
    if (type == "gs_moments_t *") return "type(gs_moments), intent(inout), contiguous ::(:)"
    if (type == "const gs_moments_t *") return "type(gs_moments), intent(in), contiguous ::(:)"
    if (type ~ /[*]$/) return "type(c_ptr), intent(in)" out " ::"
    if (type != "") return "integer(c_int), intent(in)" out " ::"
    fail(target " has no " c_name[name] ", which is in: " row)
}

# Whether [name] is that of something with a handle.
function is_thing(name)
{
    return name ~ /^(comm|reducer|boundary|halo|ckpt|pool)$/
}

# Whether [name] is a handle that the call makes.
function is_new(name)
{
    return name ~ /^(boundary|halo)$/ && type_of[target, name] == "int64_t *"
}

function declare_dummy(name, bits,    what)
{
    what = dummy_type(name, bits)
    sub(/::/, ":: " name, what)
    emit("    ", what)
}

# Whether what C writes comes in a variable of our own, and of what type that is.
function own_type(name,    type)
{
    type = type_of[target, c_name[name]]
    if (type == "int *") return "integer(c_int)"
    if (type == "int64_t *") return "integer(c_int64_t)"
    if (type == "gs_comm_t **") return "type(c_ptr)"
    if (type == "const char *" && is_optional[name]) return "character(kind=c_char), allocatable"
    return ""
}

# What the call hands on as parameter [p].
function actual(p, before,    name, type)
{
    type = type_of[target, p]
    if (type ~ /gsi_fortran_args/) return "args"
    if (p ~ /is_open$/) return "is_open(" dummy_of[before] ")"
    if (p in expression) return expression[p]
    if (!(p in dummy_of)) fail("no argument " p " of " target " in: " row)
    name = dummy_of[p]
    if (is_handle(type)) return "address"
    if (is_thing(p) && type == "int64_t") return number_of(name)
    if (own_type(name) != "") return name "_c"
    if (mark[name] != "") return "merge(1_c_int, 0_c_int, " name ")"
    if (type == "gs_stream_t") return "given(" name ", 0_c_intptr_t)"
    if (initial[name] != "") return "given(" name ", " initial[name] ")"
    if (type == "const char *") return "text_to_c(" name ")"
    if (per[name] == "dims") return "turned(" name ")"
    return name
}

# A text as C and as our own procedures get it.
function quote(word)
{
    return "'" word "'"
}

# The number in a handle.
function number_of(name)
{
    return "transfer(" name ", 0_c_int64_t)"
}

function text(word)
{
    return "'" word "' // c_null_char"
}

# The statements before the call: the handle, and what C cannot see.
function write_checks(    i, name, type, handle, wanted)
{
    handle = d[1]
    if (is_handle(type_of[target, c_name[handle]])) {
        emit("    ", "st = f_handle_find(" number_of(handle) ", KIND_" toupper(handle) ", " \
            text(call_name) ", address)")
    } else print "    st = GS_OK"
    for (i = 1; i <= dummies; i++) {
        name = d[i]
        type = type_of[target, c_name[name]]
        if (type == "size_t")
            emit("    ", "if (st == GS_OK) st = f_check_amount(" text(call_name) ", " text(name) \
                ", " (initial[name] != "" ? "given(" name ", " initial[name] ")" : name) ")")
        else if (per[name] != "") {
            wanted = "int(c_comm_size(address), c_int64_t)"
            if (per[name] in expression) wanted = "int(" expression[per[name]] ", c_int64_t)"
            else if (per[name] != "ranks") wanted = per[name]
            emit("    ", "if (st == GS_OK) st = check_list(" quote(call_name) ", " quote(name) \
                ", " wanted ", " name ")")
        }
    }
}

function write_call(    j, list, p, before)
{
    for (j = 1; j <= parameters[target]; j++) {
        p = parameter[target, j]
        list = list (j > 1 ? ", " : "") actual(p, before)
        before = p
    }
    emit("    ", (has_array ? "" : "if (st == GS_OK) ") "st = " fortran_name(target) \
        (dummy_of["p"] == "p" ? "_form" form : "") "(" list ")")
}

# Locals and their first values; then what becomes of them.
function declare_own(    i, name)
{
    for (i = 1; i <= dummies; i++) {
        name = d[i]
        if (own_type(name) != "")
            print "    " own_type(name) " :: " name "_c" (own_type(name) ~ /alloc/ ? "(:)" : "")
        if (type_of[target, c_name[name]] == "gs_comm_t **")
            print "    integer(c_int64_t) :: handle"
    }
}

function begin_own(    i, name, type)
{
    for (i = 1; i <= dummies; i++) {
        name = d[i]
        type = type_of[target, c_name[name]]
        if (type == "void **") print "    " name " = c_null_ptr"
        else if (mark[name] == "!!") print "    " name "_c = merge(1_c_int, 0_c_int, " name ")"
        else if ((type == "int *" || type == "int64_t *") && !is_new(name))
            print "    " name "_c = " (initial[name] != "" ? initial[name] : 0)
        else if (own_type(name) ~ /alloc/)
            print "    if (present(" name ")) allocate (" name "_c, source=text_to_c(" name "))"
    }
}

function end_own(    i, name, type)
{
    for (i = 1; i <= dummies; i++) {
        name = d[i]
        type = type_of[target, c_name[name]]
        if (is_new(name))
            print "    if (st == GS_OK) " name " = transfer(" name "_c, " name ")"
        else if (type == "int64_t *")
            emit("    ", "call put_integer(" name ", " name "_c, " quote(call_name) ", " \
                quote(name) ", st)")
        else if (type == "int *")
            print "    " (is_optional[name] ? "if (present(" name ")) " : "") name " = " \
                name "_c" \
                ((mark[name] != "") ? " /= 0" : "")
    }
}

# One specific procedure. [bits] 32: the one with the other kind of integer.
function write_specific(specific, bits,    i, list, n)
{
    n = order(bits)
    list = ""
    for (i = 1; i <= n; i++) list = list o[i] ", "
    emit("  ", "subroutine " specific "(" list "stat, errmsg)")
    for (i = 1; i <= n; i++) declare_dummy(o[i], bits)
    print "    integer(c_int), intent(out), optional :: stat"
    print "    character(*), intent(inout), optional :: errmsg"
    if (bits == 32 && !lists_differ()) write_delegation(specific)
    else if (has_array) write_array_body(bits)
    else write_body()
    print "  end subroutine " specific "\n"
}

# The dummies in order, as o[]. By the rules of generics a count of 32 bits comes after the stream
# where another integer comes before it.
function order(bits,    i, n, late)
{
    for (i = 1; i <= dummies; i++)
        if (d[i] ~ /^(op|root|peer|contract)$/) late = 1
    if (!has_array || bits != 32 || !("count" in also_32)) late = 0
    n = 0
    for (i = 1; i <= dummies; i++) {
        if (late && d[i] == "count") continue
        o[++n] = d[i]
        if (late && d[i] == "stream") o[++n] = "count"
    }
    return n
}

# Whether there are lists of both kinds that C itself tells apart.
function lists_differ(    name)
{
    for (name in also_32)
        if (has_array && is_list(c_name[name])) return 1
    return 0
}

function write_delegation(specific,    i, list, name, other)
{
    other = specific
    sub(/_int32$/, "", other)
    for (i = 1; i <= dummies; i++) {
        name = d[i]
        if ((name in also_32) && is_optional[name] && !has_array)
            print "    integer(c_int64_t), allocatable :: " name "_64(:) ! else not present"
    }
    print ""
    for (i = 1; i <= dummies; i++) {
        name = d[i]
        if ((name in also_32) && is_optional[name] && !has_array) {
            print "    if (present(" name ")) allocate (" name "_64, source=int(" name \
                ", c_int64_t))"
            name = name "_64"
        } else if (name in also_32) name = "int(" name ", c_int64_t)"
        list = list name ", "
    }
    emit("    ", "call " other "(" list "stat, errmsg)")
}

function write_body(    group)
{
    if (is_handle(type_of[target, c_name[d[1]]])) print "    type(c_ptr) :: address"
    print "    integer(c_int) :: st"
    declare_own()
    print ""
    begin_own()
    write_checks()
    group = d[dummies]
    if (type_of[target, c_name[group]] == "gs_comm_t **") {
        print "    if (st == GS_OK) st = f_handle_open(KIND_COMM, handle)"
        print "    if (st == GS_OK) then"
        print "      " group "_c = c_null_ptr"
        write_call()
        print "      call settle(" group ", handle, st, " group "_c)"
        print "    end if"
    } else write_call()
    end_own()
    print "    call conclude(st, stat, errmsg)"
}

function write_array_body(bits,    i, list)
{
    print "    type(c_args) :: args\n    integer(c_int) :: st"
    declare_own()
    print ""
    begin_own()
    list = number_of(d[1])
    for (i = 1; i <= dummies; i++)
        if (d[i] ~ /^(count|stream|as)$/) list = list ", " d[i] "=" d[i]
    emit("    ", "args = pack_args(" list ")")
    if (call_name ~ /_backward$/ && target !~ /_backward$/) print "    args%is_backward = 1"
    write_call()
    end_own()
    print "    call conclude_array(st, args, stat, errmsg)"
}

# A function that asks a communicator; it never stops the program.
function write_getter(name,    is_text, list, i)
{
    is_text = returns[name] ~ /[*]$/
    for (i = 1; i <= dummies; i++) list = list (i > 1 ? ", " : "") d[i]
    print "  function " name "(" list ") result(answer)"
    for (i = 1; i <= dummies; i++) declare_dummy(d[i], 64)
    print "    " (is_text ? "character(:), allocatable" : "integer(c_int)") " :: answer"
    print "    type(c_ptr) :: address\n"
    print "    answer = " (is_text ? "''" : "-1")
    print "    address = found(comm, " quote(name) ")"
    sub(/^comm/, "address", list)
    list = fortran_name(name) "(" list ")"
    print "    if (c_associated(address)) answer = " (is_text ? "text_from_c(" list ")" : list)
    print "  end function " name "\n"
}

# ---- Module gradsync_calls ----

# Names the specific procedures of all rows: specifics[name] is their list.
function count_specifics(    i, name, n)
{
    for (i = 1; i <= row_count; i++) {
        parse(rows[i])
        n = ++forms[call_name]
        if (n == 1) generics[++generic_count] = call_name
        name = call_name "_form" n
        specifics[call_name] = specifics[call_name] (n > 1 ? ", " : "") name
        specific_count[call_name]++
        if (dummy_of["p"] == "p")
            for (n = 2; n <= pointees; n++) {
                specifics[call_name] = specifics[call_name] ", " name "_" n
                specific_count[call_name]++
            }
        for (name in also_32) {
            specifics[call_name] = specifics[call_name] ", " call_name "_form" \
                forms[call_name] "_int32"
            specific_count[call_name]++
            break
        }
    }
}

function write_calls(    i, name, n)
{
    begin_module("gradsync_calls", "the procedures of calls.def.")
    if (arrays == "yes") print "  use gradsync_array"
    print "  use gradsync_c\n  use gradsync_support\n  use gradsync_types"
    print "  implicit none\n  private\n"
    set_pointees()
    count_specifics()
    for (i = 1; i <= generic_count; i++) {
        name = generics[i]
        print "  public :: " name
        if (specific_count[name] > 1 || is_generic[name]) {
            print "  interface " name
            emit("    ", "module procedure " specifics[name])
            print "  end interface " name
        }
    }
    print "\ncontains\n"
    for (i = 1; i <= row_count; i++) {
        parse(rows[i])
        row = rows[i]
        if (returns[target] != "gs_status_t") { write_getter(call_name); continue }
        n = ++written[call_name]
        name = call_name
        if (specific_count[name] > 1 || is_generic[name]) name = name "_form" n
        form = 1
        write_specific(name, 64)
        if (dummy_of["p"] == "p")
            for (form = 2; form <= pointees; form++) write_specific(name "_" form, 64)
        for (n in also_32) { write_specific(name "_int32", 32); break }
    }
    print "end module gradsync_calls"
}

END {
    if (failed) exit 1
    end_row()
    write_calls()
}
