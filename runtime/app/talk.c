#include "runtime/app/talk.h"

#include "runtime/app/interrupt.h"

#include <string.h>

/* ---- Opening --------------------------------------------------------------------- */

static enum burin_status find_stops(struct burin_talk *talk, struct burin_error *err)
{
    const struct burin_settings *settings = &talk->app->settings;
    const int32_t eos = burin_tokenizer_facts(talk->tokenizer).eos;
    if (settings->ignore_eos)
        return BURIN_OK;
    if (talk->chat.source) {
        struct burin_chat_facts facts;
        enum burin_status status =
                burin_chat_facts(&talk->chat, talk->tokenizer, &facts, err);
        if (status && !settings->raw)
            return status;
        talk->n_stop_ids = facts.n_stops;
        memcpy(talk->stop_ids, facts.stops, sizeof facts.stops);
    }
    for (int i = 0; i < talk->n_stop_ids; i++)
        if (talk->stop_ids[i] == eos)
            return BURIN_OK;
    if (eos >= 0)
        talk->stop_ids[talk->n_stop_ids++] = eos;
    return BURIN_OK;
}

static enum burin_status take_room(struct burin_talk *talk, struct burin_error *err)
{
    struct burin_app *app = talk->app;
    const size_t push = burin_decoder_room(talk->tokenizer);
    talk->room = burin_arena_take(&app->arena, push, 1, 1);
    talk->stop.texts = &app->settings.stop;
    talk->stop.buffer =
            burin_arena_take(&app->arena, burin_stop_room(&app->settings.stop, push), 1, 1);
    const size_t n_ctx = (size_t)burin_engine_info(talk->engine).n_ctx;
    talk->ids = BURIN_TAKE(&app->arena, n_ctx + 1, int32_t);
    if (!talk->room || !talk->stop.buffer || !talk->ids)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for an answer of %zu tokens", n_ctx);
    return BURIN_OK;
}

enum burin_status burin_talk_open(
        struct burin_talk *talk,
        struct burin_app *app,
        struct burin_options *options,
        struct burin_error *err)
{
    *talk = (struct burin_talk){ .app = app, .out = stdout };
    enum burin_status status = burin_app_open(app, options, &talk->engine, err);
    if (status)
        return status;

    talk->tokenizer = burin_engine_tokenizer(talk->engine);
    if (!talk->tokenizer) {
        status = burin_app_no_tokenizer(burin_engine_info(talk->engine).weights, err);
        goto fail;
    }
    char *name = burin_arena_take(&app->arena, strlen(app->model->architecture) + 16, 1, 1);
    if (name)
        sprintf(name, "%s_chat.lua", app->model->architecture);
    talk->chat = (struct burin_chat){ app->model->chat, app->model->variant,
                                      name ? name : "the chat format" };
    status = find_stops(talk, err);
    if (!status)
        status = take_room(talk, err);
    if (!status)
        return BURIN_OK;
fail:
    burin_talk_close(talk);
    return status;
}

void burin_talk_close(struct burin_talk *talk)
{
    burin_engine_close(talk->engine);
    burin_arena_close(&talk->call);
    talk->engine = NULL;
}

enum burin_status burin_talk_say(
        struct burin_talk *talk,
        const char *role,
        struct burin_span content,
        struct burin_error *err)
{
    if (talk->n_messages == BURIN_MAX_MESSAGES)
        return burin_fail(
                err, BURIN_ELIMIT, "a talk has at most %d messages", BURIN_MAX_MESSAGES);
    talk->messages[talk->n_messages++] =
            (struct burin_message){ .role = role, .content = content };
    return BURIN_OK;
}

/* ---- An answer ------------------------------------------------------------------- */

static void write_out(struct burin_talk *talk, struct burin_span text)
{
    if (!talk->out || !text.length)
        return;
    fwrite(text.at, 1, text.length, talk->out);
    (void)burin_app_flush(talk->app, NULL); /* noted: the answer ends, and tells it */
    talk->ended_with_newline = text.at[text.length - 1] == '\n';
}

static bool on_token(struct burin_request *request, int32_t token)
{
    struct burin_talk *talk = request->user;
    talk->ids[talk->n_ids++] = token;
    const size_t length = burin_decoder_push(&talk->decoder, token, talk->room);
    write_out(talk, burin_stop_push(&talk->stop, talk->room, length));
    return !talk->stop.met && !talk->app->stdout_error;
}

static enum burin_status encode_raw(
        struct burin_talk *talk,
        struct burin_span text,
        int32_t **ids,
        size_t *n_ids,
        struct burin_error *err)
{
    int32_t *encoded;
    enum burin_status status = burin_encode(
            talk->tokenizer, text, BURIN_PLAIN, &talk->call, &encoded, n_ids, err);
    if (status)
        return burin_app_blame_text(status, "the prompt", err);
    const struct burin_tokenizer_facts facts = burin_tokenizer_facts(talk->tokenizer);
    const size_t n_prefix = (size_t)facts.n_prefix;
    if (n_prefix == 0) {
        *ids = encoded;
        return BURIN_OK;
    }
    *ids = BURIN_TAKE(&talk->call, n_prefix + *n_ids, int32_t);
    if (!*ids)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for a prompt of %zu tokens", *n_ids);
    memcpy(*ids, facts.prefix, n_prefix * sizeof **ids);
    memcpy(*ids + n_prefix, encoded, *n_ids * sizeof **ids);
    *n_ids += n_prefix;
    return BURIN_OK;
}

static enum burin_status encode_chat(
        struct burin_talk *talk, int32_t **ids, size_t *n_ids, struct burin_error *err)
{
    struct burin_piece *pieces;
    int n_pieces;
    const struct burin_chat_options options = { .add_generation_prompt = true };
    enum burin_status status = burin_chat_render(
            &talk->chat, talk->messages, talk->n_messages, options, &talk->call, &pieces,
            &n_pieces, err);
    if (status)
        return burin_app_blame_text(status, "the messages", err);
    struct burin_prompt prompt;
    status =
            burin_chat_encode(talk->tokenizer, pieces, n_pieces, &talk->call, &prompt, err);
    *ids = prompt.ids;
    *n_ids = prompt.n_ids;
    return burin_app_blame_text(status, "the messages", err);
}

/* There is room for the prompt, and for a token where one is to be made. */
static enum burin_status check_length(
        const struct burin_talk *talk, size_t n_ids, struct burin_error *err)
{
    const int n_ctx = burin_engine_info(talk->engine).n_ctx;
    const int most = talk->app->model->n_ctx;
    const int n_made = talk->app->settings.n_predict != 0;
    const char *beside = n_made ? " beside an answer" : "";
    if (n_ids + (size_t)n_made <= (size_t)n_ctx)
        return BURIN_OK;
    if (n_ids + (size_t)n_made <= (size_t)most)
        return burin_fail(
                err, BURIN_ELIMIT,
                "the prompt has %zu tokens, a context of %d has room for %d%s; start with "
                "--ctx-size %d",
                n_ids, n_ctx, n_ctx - n_made, beside, most);
    return burin_fail(
            err, BURIN_ELIMIT,
            "the prompt has %zu tokens, a context of %d has room for %d%s, and the model "
            "was "
            "trained for %d: give a shorter text",
            n_ids, n_ctx, n_ctx - n_made, beside, most);
}

/* The text of what was made, cut before the stop text that ended it. */
static enum burin_status text_of(
        struct burin_talk *talk, struct burin_span *answer, struct burin_error *err)
{
    enum burin_status status = burin_decode(
            talk->tokenizer, talk->ids, (size_t)talk->n_ids, false, &talk->app->arena,
            answer, err);
    if (status || !talk->stop.met)
        return status;
    const struct burin_texts *texts = &talk->app->settings.stop;
    for (int i = 0; i < texts->n; i++) {
        const char *found = memmem(
                answer->at, answer->length, texts->values[i], strlen(texts->values[i]));
        if (found)
            answer->length = (size_t)(found - answer->at);
    }
    return BURIN_OK;
}

enum burin_status burin_talk_answer(
        struct burin_talk *talk,
        const struct burin_span *raw,
        struct burin_span *answer,
        struct burin_error *err)
{
    const struct burin_settings *settings = &talk->app->settings;
    const struct burin_arena_mark mark = burin_arena_mark(&talk->call);
    int32_t *ids = NULL;
    size_t n_ids = 0;
    enum burin_status status = raw ? encode_raw(talk, *raw, &ids, &n_ids, err)
                                   : encode_chat(talk, &ids, &n_ids, err);
    if (!status)
        status = check_length(talk, n_ids, err);
    if (status)
        goto out;

    talk->request = (struct burin_request){
        .ids = ids,
        .n_ids = (int)n_ids,
        .max_tokens = settings->n_predict,
        .stop_ids = talk->stop_ids,
        .n_stop_ids = talk->n_stop_ids,
        .sampling = { .temperature = settings->temperature,
                      .top_k = settings->top_k,
                      .top_p = settings->top_p,
                      .min_p = settings->min_p,
                      .seed = settings->seed },
        .on_token = on_token,
        .user = talk,
    };
    talk->n_ids = 0;
    talk->decoder = (struct burin_decoder){ .tokenizer = talk->tokenizer };
    talk->stop.met = false;
    talk->stop.n_held = 0;
    talk->stop.begin = 0;
    talk->ended_with_newline = false;
    status = burin_submit(talk->engine, &talk->request, err);
    if (status)
        goto out;
    burin_interrupt_cancels(&talk->request);
    status = burin_engine_run(talk->engine, err);
    burin_interrupt_wakes();
    if (status)
        goto out;

    const size_t length = burin_decoder_flush(&talk->decoder, talk->room);
    write_out(talk, burin_stop_push(&talk->stop, talk->room, length));
    write_out(talk, burin_stop_flush(&talk->stop));
    status = text_of(talk, answer, err);
    if (status)
        goto out;
    if (burin_interrupt_taken())
        status = burin_fail(err, BURIN_ESTOPPED, "interrupted");
    else if (talk->request.finish == BURIN_FAILED)
        status = burin_fail(
                err, talk->request.error.status, "%s", talk->request.error.message);
    else if (talk->app->stdout_error)
        status = burin_app_flush(talk->app, err);
out:
    burin_arena_rewind(&talk->call, mark);
    return status;
}
