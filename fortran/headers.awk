# SPDX-License-Identifier: BSD-3-Clause
#
# headers.awk - reads the prototypes of the headers, for calls.awk too, and by itself writes
# module gradsync_c, the functions as interfaces: gs_NAME as c_NAME, gsi_fortran_NAME as f_NAME.
#
# awk -f headers.awk HEADER...

# ---- What is read ----

FILENAME ~ /\.h$/ {
    gsub(/\/\*[^*]*\*\//, "")
    if (in_comment || /\/\*/) {
        in_comment = !/\*\//
        next
    }
}
FILENAME ~ /\.h$/ && !/^typedef/ && /^(const )?[a-z0-9_]+ [*]?gsi?_[a-z0-9_]+ \(/ {
    prototype = ""
    reading = 1
}
FILENAME ~ /\.h$/ && reading {
    prototype = prototype " " $0
    if (/;/) {
        reading = 0
        declare(prototype)
    }
}

# Keeps a prototype: returns[], number of parameters[], name and type of each.
function declare(text,    name, list, n, i, words)
{
    match(text, /gsi?_[a-z0-9_]+ \(/)
    name = substr(text, RSTART, RLENGTH - 2)
    returns[name] = trim(substr(text, 1, RSTART - 1))
    functions[++function_count] = name
    list = substr(text, RSTART + RLENGTH)
    sub(/\).*/, "", list)
    n = trim(list) == "void" ? 0 : split(list, words, ",")
    parameters[name] = n
    for (i = 1; i <= n; i++) {
        match(words[i], /[a-z0-9_]+ *$/)
        parameter[name, i] = trim(substr(words[i], RSTART))
        type_of[name, parameter[name, i]] = trim(substr(words[i], 1, RSTART - 1))
    }
}

function trim(text)
{
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    gsub(/[ \t]+/, " ", text)
    return text
}

function fail(text)
{
    print "calls.awk: " text >"/dev/stderr"
    failed = 1
    exit 1
}

# ---- What is written ----

# A statement, in lines of up to 98 columns.
function emit(indent, text,    room, at)
{
    while (length(indent text) > 98) {
        room = 96 - length(indent)
        for (at = room; at > 0 && substr(text, at, 1) != " "; at--)
            ;
        print indent substr(text, 1, at) "&"
        text = "  " substr(text, at + 1)
    }
    print indent text
}

function begin_module(name, purpose)
{
    print "! SPDX-License-Identifier: BSD-3-Clause"
    print "! Made by calls.awk; do not edit."
    print "! " name " - " purpose
    print "module " name
    print "  use, intrinsic :: iso_c_binding"
}

function fortran_name(name)
{
    return name ~ /^gsi_fortran_/ ? "f_" substr(name, 13) : "c_" substr(name, 4)
}

function is_handle(type)
{
    return type ~ /^(const )?gs_(comm|reducer|boundary|halo|ckpt|pool)_t [*]$/
}

function is_list(name)
{
    return name ~ /(counts|displs|offsets|shape|lower)$/
}

# A parameter of C as a dummy argument, without its name.
function interface_type(type, name,    intent)
{
    intent = type ~ /^const/ ? ", intent(in)" : ", intent(inout)"
    if (type == "gs_stream_t") return "integer(c_intptr_t), value ::"
    if (type ~ /^gs_[a-z_]+_f$/) return "type(c_funptr), value ::"
    if (type ~ /^(int|(gs_[a-z_]+_t)|(enum [a-z_]+))$/) return "integer(c_int), value ::"
    if (type == "int64_t") return "integer(c_int64_t), value ::"
    if (type == "size_t") return "integer(c_size_t), value ::"
    if (type == "double") return "real(c_double), value ::"
    if (type ~ /CFI_cdesc_t/)
        return "type(*), dimension(..), asynchronous" intent \
            (is_list(name) || name == "mask" ? ", optional ::" : " ::")
    if (type == "const char *") return "character(kind=c_char), optional" intent " ::(*)"
    intent = intent " ::" (type ~ /^const/ || name == "steps" ? "(*)" : "")
    if (type ~ /^(const )?size_t [*]$/) return "integer(c_size_t), optional" intent
    if (type ~ /^(const )?int64_t [*]$/) return "integer(c_int64_t), optional" intent
    if (type ~ /^(const )?int [*]$/) return "integer(c_int)" intent
    if (type ~ /^(const )?double [*]$/) return "real(c_double), optional" intent
    if (type == "void *const *") return "type(c_ptr), intent(in) ::(*)"
    if (type ~ /[*][*]$/) return "type(c_ptr), optional, intent(inout) ::"
    if (type ~ /(void|unsigned char) [*]$/ || is_handle(type)) return "type(c_ptr), value ::"
    sub(/::.*/, type ~ /gs_(moments|array)_t/ ? "::(*)" : "::", intent)
    if (type ~ /(gs_[a-z_]+_t|struct gsi_fortran_[a-z]+) [*]$/)
        return "type(" struct(type) ")" intent
    fail("no Fortran type for " type name)
}

function struct(type)
{
    match(type, /gs(i_fortran)?_[a-z_]+/)
    type = substr(type, RSTART, RLENGTH)
    sub(/^gs(i_fortran)?_/, "", type)
    sub(/_t$/, "", type)
    return "c_" type
}

# Pointers of these types may be given a gradient.
function set_pointees()
{
    pointees = split("real(c_float)|real(c_double)|complex(c_float_complex)|" \
        "complex(c_double_complex)|integer(c_int16_t)", pointee, "|")
}

function write_interfaces(    i, j, name)
{
    begin_module("gradsync_c", "the C functions of the headers, in their order.")
    print "  use gradsync_structs\n  implicit none\n  public\n\n  interface"
    set_pointees()
    for (i = 1; i <= function_count; i++) {
        name = functions[i]
        if ((name, "p") in type_of)
            for (j = 1; j <= pointees; j++) write_interface(name, "_form" j, pointee[j])
        else write_interface(name, "")
    }
    print "  end interface\nend module gradsync_c"
}

# One function; with [p], which is of the type [of].
function write_interface(name, suffix, of,    j, list, kind, what, p)
{
    for (j = 1; j <= parameters[name]; j++)
        list = list (j > 1 ? ", " : "") parameter[name, j]
    kind = returns[name] == "void" ? "subroutine" : "function"
    emit("    ", kind " " fortran_name(name) suffix "(" list ") bind(c, name=\"" name "\")" \
        (kind == "function" ? " result(answer)" : ""))
    print "      import"
    for (j = 1; j <= parameters[name]; j++) {
        p = parameter[name, j]
        what = p == "p" ? of ", pointer, intent(out) ::(..)" : interface_type(type_of[name, p], p)
        sub(/::/, ":: " p, what)
        print "      " what
    }
    if (returns[name] ~ /[*]$/) print "      type(c_ptr) :: answer"
    else if (returns[name] == "size_t") print "      integer(c_size_t) :: answer"
    else if (kind == "function") print "      integer(c_int) :: answer"
    print "    end " kind " " fortran_name(name) suffix "\n"
}

END {
    if (failed) exit 1
    if (arrays == "") write_interfaces()
}
