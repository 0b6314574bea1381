/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_ftorch.cpp - .grad tensors in a reducer's memory, and a hook behind each of them.
 */
#include "gradsync_ftorch.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/script.h>

namespace
{

/* N.B. a std::shared_ptr in libtorch 1.13, an intrusive_ptr in 2.15. */
using node_pointer = decltype (torch::autograd::impl::grad_accumulator (torch::Tensor ()));

struct parameter {
    std::string name;
    torch::Tensor tensor;
    int index = -1;     /* of the gradient; -1: it needs none */
    bool first = false; /* it needs one, and no parameter before shares it */
    gs_dtype_t dtype;
    std::vector<size_t> shape;
    torch::Tensor grad;       /* the reducer's memory; undefined before the start */
    node_pointer accumulator; /* autograd alone would let it go */
    uintptr_t hook = 0;
    bool ready = false; /* in this step */
};

thread_local std::string last_text;

/* A status with its text, thrown to the function that the program called. */
struct failure {
    gs_status_t status;
    std::string text;
};

gs_status_t fail (gs_status_t status, const char *call, const std::string &text) noexcept
{
    try {
        last_text = std::string (call) + ": " + text;
    } catch (...) {
        last_text.clear (); /* no memory for it */
    }
    return status;
}

void require (bool right, gs_status_t status, const char *text)
{
    if (!right)
        throw failure{status, text};
}

void check (gs_status_t status, const std::string &what)
{
    if (status)
        throw failure{status, what + ": " + gs_last_error ()};
}

/* Calls [body]; an exception becomes a status. */
template <class Body> gs_status_t guarded (const char *call, Body body) noexcept
{
    try {
        body ();
        return GS_OK;
    } catch (const failure &f) {
        return fail (f.status, call, f.text);
    } catch (const c10::Error &e) {
        return fail (GS_ERR_ARG, call, std::string ("libtorch: ") + e.what_without_backtrace ());
    } catch (const std::bad_alloc &) {
        return fail (GS_ERR_NOMEM, call, "out of memory");
    } catch (const std::exception &e) {
        return fail (GS_ERR_ARG, call, std::string ("libtorch: ") + e.what ());
    } catch (...) {
        return fail (GS_ERR_ARG, call, "libtorch threw what is no std::exception");
    }
}

/* 0 for a type that gradsync does not average. */
gs_dtype_t dtype_of (const torch::Tensor &tensor)
{
    switch (tensor.scalar_type ()) {
    case torch::kHalf: return GS_F16;
    case torch::kBFloat16: return GS_BF16;
    case torch::kFloat: return GS_F32;
    case torch::kDouble: return GS_F64;
    case torch::kComplexFloat: return GS_C64;
    case torch::kComplexDouble: return GS_C128;
    default: return (gs_dtype_t) 0;
    }
}

void check_tensor (const torch::Tensor &tensor, const std::string &name)
{
    if (!tensor.device ().is_cpu ())
        throw failure{GS_ERR_UNSUPPORTED, "parameter '" + name + "' is on " +
                                              tensor.device ().str () +
                                              "; load the model with torch_kCPU"};
    if (!tensor.is_contiguous ())
        throw failure{GS_ERR_UNSUPPORTED, "parameter '" + name +
                                              "' is not contiguous; before the model is saved: "
                                              "p.data = p.data.contiguous ()"};
    if (tensor.requires_grad () && !dtype_of (tensor))
        throw failure{GS_ERR_UNSUPPORTED,
                      "parameter '" + name + "' is of type " +
                          torch::toString (tensor.scalar_type ()) +
                          ", which has no averages; convert the model, as with model.float ()"};
    if (tensor.dim () > GS_REDUCER_DIMS_MAX)
        throw failure{GS_ERR_UNSUPPORTED, "parameter '" + name + "' has " +
                                              std::to_string (tensor.dim ()) +
                                              " dimensions; reshape it to " +
                                              std::to_string (GS_REDUCER_DIMS_MAX) + " at most"};
}

bool in_place (const parameter &p)
{
    return p.tensor.grad ().defined () && p.tensor.grad ().is_alias_of (p.grad);
}

} // namespace

struct gs_ftorch {
    gs_reducer_t *reducer = nullptr;
    std::vector<parameter> parameters; /* does not grow once it is started */
    bool started = false;
    gs_status_t status = GS_OK; /* the first failure of a hook in this step, and its text */
    std::string text;

    gs_ftorch () = default;
    gs_ftorch (const gs_ftorch &) = delete;
    gs_ftorch &operator= (const gs_ftorch &) = delete;
    ~gs_ftorch ();

    void add (const std::string &name, const torch::Tensor &tensor);
    void attach (parameter &p);
    std::vector<void *> data () const;
    void arrived (parameter &p);
    void note (gs_status_t st, const std::string &what);
};

void gs_ftorch::add (const std::string &name, const torch::Tensor &tensor)
{
    parameter p;

    check_tensor (tensor, name);
    p.name = name;
    p.tensor = tensor;
    p.first = tensor.requires_grad ();
    p.dtype = dtype_of (tensor);
    p.shape.assign (tensor.sizes ().begin (), tensor.sizes ().end ());
    for (const parameter &other : parameters)
        if (other.tensor.is_same (tensor)) { /* layers may share one */
            p.first = false;
            p.index = other.index;
        }
    if (p.first)
        check (gs_reducer_add (reducer, name.c_str (), (int) p.shape.size (), p.shape.data (),
                               p.dtype, nullptr, &p.index),
               "parameter '" + name + "'");
    parameters.push_back (std::move (p));
}

void gs_ftorch::note (gs_status_t st, const std::string &what)
{
    if (status)
        return;
    status = st;
    text = what;
}

/* Autograd has added to a gradient; called by its engine. */
void gs_ftorch::arrived (parameter &p)
{
    gs_status_t st;

    if (in_place (p)) {
        st = gs_reducer_ready (reducer, p.index, nullptr);
        if (st)
            note (st, "parameter '" + p.name + "': " + gs_last_error ());
        p.ready = true;
        return;
    }
    note (GS_ERR_STATE, "the gradient of parameter '" + p.name +
                            "' is no longer in the reducer's memory, as after zero_grad of an "
                            "optimizer; call gs_ftorch_zero_grad in its place");
}

void gs_ftorch::attach (parameter &p)
{
    using torch::autograd::variable_list;
    void *memory = nullptr;

    check (gs_reducer_get_grad (reducer, p.index, &memory), "parameter '" + p.name + "'");
    p.grad = memory ? torch::from_blob (memory, p.tensor.sizes (), p.tensor.options ())
                    : torch::empty (p.tensor.sizes (), p.tensor.options ());
    p.grad = p.grad.detach ();
    p.tensor.mutable_grad () = p.grad;
    p.accumulator = torch::autograd::impl::grad_accumulator (p.tensor);
    p.hook =
        p.accumulator->add_post_hook (std::make_unique<torch::autograd::utils::LambdaPostHook> (
            [this, &p] (const variable_list &outputs, const variable_list &) {
                arrived (p);
                return outputs;
            }));
}

/* The parameters as gs_reducer_broadcast takes them: NULL for gradients of others. */
std::vector<void *> gs_ftorch::data () const
{
    std::vector<void *> list;
    void *grad;

    while (!gs_reducer_get_grad (reducer, (int) list.size (), &grad))
        list.push_back (nullptr);
    for (const parameter &p : parameters)
        if (p.first)
            list.at ((size_t) p.index) = p.tensor.data_ptr ();
    return list;
}

gs_ftorch::~gs_ftorch ()
{
    for (parameter &p : parameters) {
        if (!p.accumulator)
            continue;
        p.accumulator->del_post_hook (p.hook);
        if (in_place (p)) /* memory that the reducer frees */
            p.tensor.mutable_grad () = torch::Tensor ();
    }
}

static void require_started (const gs_ftorch *net)
{
    require (net, GS_ERR_ARG, "net is NULL");
    require (net->started, GS_ERR_STATE, "call gs_ftorch_start first");
}

gs_status_t gs_ftorch_create (void *model, const gs_comm_t *comm, gs_reducer_t *reducer,
                              gs_ftorch_t **net, int *count)
{
    return guarded (__func__, [=] {
        auto made = std::make_unique<gs_ftorch> ();

        require (net && count, GS_ERR_ARG, "net or count is NULL");
        *net = nullptr;
        require (model && comm, GS_ERR_ARG,
                 "model or comm is NULL; torch_model_load makes a model");
        require (gs_comm_device (comm) == GS_DEVICE_HOST, GS_ERR_UNSUPPORTED,
                 "the communicator is on a GPU, models are on the host; give gs_comm_create "
                 "device=GS_DEVICE_HOST");
        made->reducer = reducer;
        for (const auto &p : static_cast<torch::jit::Module *> (model)->named_parameters ())
            made->add (p.name, p.value);
        require (std::any_of (made->parameters.begin (), made->parameters.end (),
                              [] (const parameter &p) { return p.first; }),
                 GS_ERR_ARG,
                 "no parameter of the model has requires_grad; set it before the model is saved");
        *count = (int) made->parameters.size ();
        *net = made.release ();
    });
}

gs_status_t gs_ftorch_start (gs_ftorch_t *net, int root)
{
    return guarded (__func__, [=] {
        require (net, GS_ERR_ARG, "net is NULL");
        require (!net->started, GS_ERR_STATE, "it was started before");
        for (parameter &p : net->parameters)
            if (p.first && !p.accumulator)
                net->attach (p);
        check (gs_reducer_broadcast (net->reducer, net->data ().data (), root, nullptr),
               "parameters");
        torch::jit::setGraphExecutorOptimize (false);
        net->started = true;
    });
}

gs_status_t gs_ftorch_zero_grad (gs_ftorch_t *net)
{
    return guarded (__func__, [=] {
        require_started (net);
        torch::NoGradGuard off;

        for (parameter &p : net->parameters) {
            if (!p.first)
                continue;
            p.grad.zero_ ();
            p.tensor.mutable_grad () = p.grad;
        }
    });
}

gs_status_t gs_ftorch_finish (gs_ftorch_t *net)
{
    return guarded (__func__, [=] {
        require_started (net);
        if (net->status)
            throw failure{std::exchange (net->status, GS_OK), net->text};
        for (parameter &p : net->parameters)
            if (p.first && !std::exchange (p.ready, false))
                check (gs_reducer_skip (net->reducer, p.index, nullptr),
                       "parameter '" + p.name + "'");
        check (gs_reducer_finish (net->reducer, nullptr), "the averages");
    });
}

gs_status_t gs_ftorch_get (const gs_ftorch_t *net, int at, gs_ftorch_parameter_t *parameter)
{
    return guarded (__func__, [=] {
        require (net && parameter, GS_ERR_ARG, "net or parameter is NULL");
        require (at >= 0 && (size_t) at < net->parameters.size (), GS_ERR_ARG,
                 "there is no such parameter; gs_ftorch_create tells how many there are");
        const auto &p = net->parameters[(size_t) at];

        *parameter = {};
        parameter->name = p.name.c_str ();
        parameter->index = p.index;
        parameter->dims = (int) p.shape.size ();
        for (size_t i = 0; i < p.shape.size (); i++)
            parameter->shape[i] = p.shape[i];
        parameter->dtype = p.dtype;
        parameter->data = p.tensor.data_ptr ();
        parameter->grad = p.tensor.grad ().defined () ? p.tensor.grad ().data_ptr () : nullptr;
    });
}

void gs_ftorch_destroy (gs_ftorch_t *net)
{
    guarded (__func__, [=] { delete net; });
}

const char *gs_ftorch_last_error (void)
{
    return last_text.c_str ();
}
