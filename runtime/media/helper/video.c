/* runtime/media/helper/video.c -- Video by FFmpeg's libraries, used for as little as will do:
 * three containers, seven codecs, one thread, bytes from fd 0 alone. */
#include "runtime/base/round.h"
#include "runtime/media/helper/helper.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/cpu.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>

enum { READ_BYTES = 64 << 10 };

static const char codecs[] = "h264,hevc,vp8,vp9,libdav1d,mpeg4,mjpeg";

struct video {
    AVFormatContext *format;
    AVStream *stream;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    int64_t position; /* in the file */
    int64_t n_bytes;  /* of it */
};

void burin_video_prepare(void)
{
    av_log_set_level(AV_LOG_QUIET);
    (void)av_get_cpu_flags(); /* it may look at /proc */
    (void)av_cpu_count();
}

bool burin_video_is_built(void)
{
    return true;
}

/* ---- Bytes --------------------------------------------------------------------------- */

static int read_bytes(void *context, uint8_t *to, int n)
{
    struct video *video = context;
    const ssize_t got = pread(STDIN_FILENO, to, (size_t)n, video->position);
    if (got < 0)
        return AVERROR(errno);
    video->position += got;
    return got ? (int)got : AVERROR_EOF;
}

static int64_t seek(void *context, int64_t offset, int whence)
{
    struct video *video = context;
    if (whence & AVSEEK_SIZE)
        return video->n_bytes;
    whence &= ~AVSEEK_FORCE;
    if (whence == SEEK_CUR)
        offset += video->position;
    else if (whence == SEEK_END)
        offset += video->n_bytes;
    else if (whence != SEEK_SET)
        return AVERROR(EINVAL);
    if (offset < 0)
        return AVERROR(EINVAL);
    video->position = offset;
    return offset;
}

/* ---- Opening ------------------------------------------------------------------------- */

static enum burin_status damaged(int code, const char *doing, struct burin_error *err)
{
    char said[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(code, said, sizeof said);
    return burin_fail(
            err, code == AVERROR(ENOMEM) ? BURIN_ENOMEM : BURIN_EFORMAT,
            "a damaged or truncated video: %s: %s", doing, said);
}

static enum burin_status open_container(
        struct video *video, enum burin_file file, struct burin_error *err)
{
    const char *name = file == BURIN_FILE_MOV        ? "mov"
                       : file == BURIN_FILE_MATROSKA ? "matroska"
                                                     : "avi";
    *video = (struct video){ .n_bytes = lseek(STDIN_FILENO, 0, SEEK_END) };
    uint8_t *buffer = av_malloc(READ_BYTES);
    AVIOContext *io =
            avio_alloc_context(buffer, READ_BYTES, 0, video, read_bytes, NULL, seek);
    video->format = avformat_alloc_context();
    video->packet = av_packet_alloc();
    video->frame = av_frame_alloc();
    if (!buffer || !io || !video->format || !video->packet || !video->frame)
        return burin_fail(err, BURIN_ENOMEM, "no memory to read a video");
    video->format->pb = io;
    video->format->codec_whitelist = av_strdup(codecs);
    int code = avformat_open_input(&video->format, NULL, av_find_input_format(name), NULL);
    if (code < 0)
        return damaged(code, "its beginning", err);
    code = avformat_find_stream_info(video->format, NULL);
    return code < 0 ? damaged(code, "its streams", err) : BURIN_OK;
}

/* A picture that a recording has as its cover is no video. */
static bool is_film(const AVStream *stream)
{
    return stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
           !(stream->disposition & AV_DISPOSITION_ATTACHED_PIC);
}

static enum burin_status choose_stream(struct video *video, struct burin_error *err)
{
    const char *other = "nothing";
    for (unsigned i = 0; i < video->format->nb_streams; i++) {
        AVStream *stream = video->format->streams[i];
        if (is_film(stream) && !video->stream) {
            video->stream = stream;
            continue;
        }
        stream->discard = AVDISCARD_ALL;
        if (stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO)
            other = "sound";
    }
    if (video->stream)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EFORMAT, "a file without video: it holds %s (%s)", other,
            video->format->nb_streams
                    ? avcodec_get_name(video->format->streams[0]->codecpar->codec_id)
                    : "no stream");
}

static enum burin_status refuse_codec(enum AVCodecID id, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EFORMAT,
            "a video in %s; H.264, HEVC, VP8, VP9, AV1, MPEG-4 and Motion JPEG are read",
            avcodec_get_name(id));
}

static enum burin_status open_codec(
        struct burin_helper *helper, struct video *video, struct burin_error *err)
{
    const AVCodecParameters *found = video->stream->codecpar;
    const AVCodec *codec = found->codec_id == AV_CODEC_ID_AV1
                                   ? avcodec_find_decoder_by_name("libdav1d")
                                   : avcodec_find_decoder(found->codec_id);
    video->codec = codec ? avcodec_alloc_context3(codec) : NULL;
    if (!video->codec)
        return refuse_codec(found->codec_id, err);
    video->codec->thread_count = 1;
    video->codec->codec_whitelist = av_strdup(codecs);
    video->codec->max_pixels = helper->max_pixels;
    video->codec->pkt_timebase = video->stream->time_base;
    int code = avcodec_parameters_to_context(video->codec, found);
    if (code >= 0)
        code = avcodec_open2(video->codec, codec, NULL);
    if (code == AVERROR(EINVAL)) /* what the list of codecs leaves out */
        return refuse_codec(found->codec_id, err);
    return code < 0 ? damaged(code, "its decoder", err) : BURIN_OK;
}

static enum burin_status open_video(
        struct burin_helper *helper,
        struct video *video,
        enum burin_file file,
        struct burin_error *err)
{
    enum burin_status status = open_container(video, file, err);
    if (!status)
        status = choose_stream(video, err);
    if (!status)
        status = open_codec(helper, video, err);
    if (status) /* before its size: what can't be decoded may not have said one */
        return status;
    const AVCodecParameters *found = video->stream->codecpar;
    return burin_picture_check(helper, found->width, found->height, err);
}

/* As EXIF has it: phones film sideways and say so beside the stream. */
static int orientation(const AVStream *stream)
{
    const uint8_t *matrix =
            av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, NULL);
    if (!matrix)
        return 1;
    const double angle = av_display_rotation_get((const int32_t *)(const void *)matrix);
    if (isnan(angle))
        return 1;
    switch ((int)lround(angle / 90)) { /* counterclockwise */
    case 1:
        return 8;
    case -1:
        return 6;
    case 2:
    case -2:
        return 3;
    default:
        return 1;
    }
}

/* ---- What it is ---------------------------------------------------------------------- */

/* Whether a packet brings a frame that is shown: VP8 keeps some for reference alone. */
static bool shows(const struct video *video, const AVPacket *packet)
{
    if (packet->flags & (AV_PKT_FLAG_DISCARD | AV_PKT_FLAG_CORRUPT))
        return false;
    if (video->stream->codecpar->codec_id == AV_CODEC_ID_VP8)
        return packet->size > 0 && (packet->data[0] >> 4 & 1);
    return true;
}

/* Frames for each second, of so many that lie between two times of the stream. */
static double average_fps(const struct video *video, int64_t n, int64_t begin, int64_t end)
{
    const AVRational said = video->stream->avg_frame_rate;
    if (begin < end)
        return (double)n / ((double)(end - begin) * av_q2d(video->stream->time_base));
    return said.num > 0 && said.den > 0 ? av_q2d(said) : 0;
}

enum burin_status burin_video_describe(
        struct burin_helper *helper, enum burin_file file, struct burin_error *err)
{
    struct video video;
    const enum burin_status status = open_video(helper, &video, file, err);
    if (status)
        return status;

    /* A container may say nothing of its frames, or be cut: what is there is counted. */
    int64_t n_packets = 0, n_frames = 0, begin = INT64_MAX, end = INT64_MIN;
    for (; av_read_frame(video.format, video.packet) >= 0; av_packet_unref(video.packet)) {
        const AVPacket *packet = video.packet;
        if (packet->stream_index != video.stream->index)
            continue;
        n_packets += !(packet->flags & AV_PKT_FLAG_CORRUPT);
        if (!shows(&video, packet))
            continue;
        n_frames++;
        if (n_frames > helper->max_frames)
            return burin_fail(
                    err, BURIN_ELIMIT,
                    "a video of more than %lld frames: cut it into shorter ones",
                    (long long)helper->max_frames);
        if (packet->pts == AV_NOPTS_VALUE)
            continue;
        if (packet->pts < begin)
            begin = packet->pts;
        if (packet->pts + packet->duration > end)
            end = packet->pts + packet->duration;
    }
    if (!n_frames)
        return burin_fail(
                err, BURIN_EFORMAT, "a damaged or truncated video: it has no whole frame");
    const AVCodecParameters *found = video.stream->codecpar;
    const bool is_turned = orientation(video.stream) >= 5;
    const int64_t n_declared = file == BURIN_FILE_MOV ? video.stream->nb_frames : 0;
    burin_send_video(
            is_turned ? found->height : found->width,
            is_turned ? found->width : found->height, n_frames,
            n_declared > n_packets ? n_declared : 0,
            average_fps(&video, n_frames, begin, end));
    return BURIN_OK;
}

/* ---- Frames -------------------------------------------------------------------------- */

static enum burin_status send_frame(
        struct burin_helper *helper,
        const struct video *video,
        int64_t index,
        struct burin_error *err)
{
    const AVFrame *frame = video->frame;
    const struct burin_arena_mark mark = burin_arena_mark(&helper->arena);
    /* Whole vectors a row: where they don't fit, swscale leaves the last pixels out. */
    struct burin_picture picture = { 0 };
    const int64_t padded = (int64_t)burin_round_up((size_t)frame->width, 64);
    enum burin_status status =
            burin_picture_take(helper, &picture, padded, frame->height, 3, err);
    if (status)
        return status;
    picture.width = frame->width;
    picture.orientation = orientation(video->stream);

    struct SwsContext *scaler = sws_getContext(
            frame->width, frame->height, (enum AVPixelFormat)frame->format, frame->width,
            frame->height, AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
    if (!scaler)
        return burin_fail(
                err, BURIN_EFORMAT, "a video whose pixels (format %d) can't become RGB",
                frame->format);
    /* Its own matrix and range; what says neither is BT.601 and narrow, as swscale has it. */
    const int *matrix = sws_getCoefficients(
            frame->colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT
                                                       : (int)frame->colorspace);
    sws_setColorspaceDetails(
            scaler, matrix, frame->color_range == AVCOL_RANGE_JPEG,
            sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    uint8_t *const planes[4] = { picture.pixels };
    const int strides[4] = { (int)picture.stride };
    sws_scale(
            scaler, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
            planes, strides);
    sws_freeContext(scaler);
    burin_send_picture(helper, &picture, index);
    burin_arena_rewind(&helper->arena, mark);
    return BURIN_OK;
}

/* The next frame in the order they are shown; *more is false behind the last. */
static enum burin_status next_frame(
        struct video *video, bool *more, struct burin_error *err)
{
    while (true) {
        int code = avcodec_receive_frame(video->codec, video->frame);
        *more = code >= 0;
        if (code >= 0 || code == AVERROR_EOF)
            return BURIN_OK;
        if (code != AVERROR(EAGAIN))
            return damaged(code, "its frames", err);
        code = av_read_frame(video->format, video->packet);
        const bool ours = code >= 0 && video->packet->stream_index == video->stream->index;
        if (code < 0) {
            (void)avcodec_send_packet(
                    video->codec, NULL); /* the end: what it still holds */
        } else if (ours) {
            code = avcodec_send_packet(video->codec, video->packet);
            if (code < 0 && code != AVERROR_INVALIDDATA)
                return damaged(code, "its frames", err);
        }
        av_packet_unref(video->packet);
    }
}

enum burin_status burin_video_frames(
        struct burin_helper *helper,
        enum burin_file file,
        const int64_t *indices,
        size_t n_indices,
        struct burin_error *err)
{
    struct video video;
    enum burin_status status = open_video(helper, &video, file, err);
    size_t n_sent = 0;
    for (int64_t index = 0; !status && n_sent < n_indices; index++) {
        bool more = false;
        status = next_frame(&video, &more, err);
        if (!status && !more)
            status = burin_fail(
                    err, BURIN_EFORMAT,
                    "a damaged or truncated video: %lld frames can be decoded, frame %lld "
                    "is needed",
                    (long long)index, (long long)indices[n_sent]);
        if (!status && index == indices[n_sent]) {
            status = send_frame(helper, &video, index, err);
            n_sent++;
        }
        av_frame_unref(video.frame);
    }
    return status;
}
